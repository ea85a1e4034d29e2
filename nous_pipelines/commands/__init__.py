"""The commands the pipelines add to `nous`."""
