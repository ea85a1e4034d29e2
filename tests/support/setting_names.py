"""The environment variables that settings are read from."""

from __future__ import annotations

from nous_online.core.settings import Settings


def setting_names() -> set[str]:
    """Return the name of each."""
    return {str(field.validation_alias or f"NOUS_{name.upper()}") for name, field in Settings.model_fields.items()}
