"""Speeds of the host software, with what they are compared to in the same run."""
