"""Imports of histories from files, checked record by record and resumable."""
