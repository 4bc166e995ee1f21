"""The destination at work: from what bistros serve to verdicts that are logged."""
