"""The night in Dagster: definitions, assets, resources, schedules, sensors, and what they run."""
