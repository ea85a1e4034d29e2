"""The endpoints, a file for each group of verbs."""
