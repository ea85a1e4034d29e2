"""Histories from files: checked line by line, stored as they are, resumable."""
