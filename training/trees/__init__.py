"""Training of the offline judge's pair model: reproducible bit for bit."""
