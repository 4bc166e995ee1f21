"""What the files of services and witnesses say."""
