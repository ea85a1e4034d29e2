"""The nightly lifecycle of memories as a Dagster project."""
