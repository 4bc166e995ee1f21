"""Files that are not whole yet: written, checked, read again where they are doubted."""
