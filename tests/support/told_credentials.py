"""Sentences that hold what looks like a credential."""

from __future__ import annotations

# Put together here, so that no scanner takes them for real ones.
KEY = "sk" + "-proj-" + "4fQ" * 9
GITHUB = "gh" + "p_" + "a1B2" * 9
AWS = "AK" + "IA" + "QX7" * 5
JWT = "ey" + "JhbGciOi" + "." + "eyJzdWIiOiI" + ".abc"
RANDOM = "a9F3kd82LsPq0Zx7Wm4T"
HEX = "9f86d081" * 4
PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"
HELD = [
    "The password is hunter2.",
    "My password for the guest network is swordfish",
    "Orla changed the passphrase to Mill#44.",
    f"Use {KEY} for now.",
    f"The deploy key {GITHUB} expires soon.",
    f"aws_access_key_id={AWS}",
    "DB_PASSWORD=mill44",
    f"Authorization: Bearer {JWT}",
    "Connect to postgres://orla:mill44@db.example/shed",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "The card is 4111 1111 1111 1111.",
    "His number is 078-05-1120.",
    "The PIN is 4821.",
    f"It said {RANDOM}, whatever that means.",
    "Das Passwort: mühle44",
    f"The API key {HEX} works for staging.",
    f"The encryption key is {HEX}",
    "Use hunter2 as the password.",
    "Use swordfish as the password.",
    "My password's hunter2.",
    "My password’s swordfish.",  # noqa: RUF001 — as a phone types it
    "The password — hunter2 — works.",
    "The password — swordfish — works.",
    "The password I use for everything, including my bank, is swordfish.",
    "The password for the very old router in the basement is swordfish.",
    "Set DB_PASS=swordfish in the env.",
    "SIGNING_KEY=swordfish",
    "pw: swordfish",
    "creds: admin/swordfish",
    "Log in as root with Tr0ub4dor&3.",
    "Log in as root with swordfish.",
    "The door code is 4821.",
    "The alarm code 4821 still works.",
    "My PIN: 42",
    "The wifi password is swordfishing.",
    "swordfish is my password.",
    "The passphrase is correct swordfish battery staple.",
    f"The seed phrase is {PHRASE}.",
    PHRASE,
]
