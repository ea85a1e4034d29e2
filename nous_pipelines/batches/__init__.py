"""The pairs of a night that Claude is asked about, at half the price and with a day to answer."""
