"""Recall: what a query finds, in which order, and what was used of it."""
