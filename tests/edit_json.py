"""Edits JSON files and removes their checksum, as a user might."""

import json
from pathlib import Path


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    content = json.loads(text.replace(old, new))
    content.pop("checksum", None)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
