"""The sample history behind the demo."""
