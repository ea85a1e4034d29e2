"""What everything else is said in: values, kinds, errors, checks, policy and settings. No database, no model."""
