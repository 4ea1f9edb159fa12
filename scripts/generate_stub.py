"""Writes the record classes of the stub from the declaration that the native core carries.

python scripts/generate_stub.py            # rewrite the part between the markers
python scripts/generate_stub.py --check    # exit with 1 if it is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict

from chainframe import _native

STUB = Path(__file__).parent.parent / "python" / "chainframe" / "_native.pyi"
BEGIN = "# --- records, written by scripts/generate_stub.py: `make stub` ---\n"
END = "# --- end of records ---\n"


class Field(TypedDict):
    name: str
    wire: list[str]
    kind: str
    python: str
    doc: str


class RecordType(TypedDict):
    name: str
    doc: str
    fields: list[Field]


def main(arguments: list[str]) -> int:
    current = STUB.read_text(encoding="utf-8")
    wanted = written(current, records())
    if wanted == current:
        return 0
    if "--check" in arguments:
        print(f"{STUB.name} differs from the declaration; run: make stub", file=sys.stderr)
        return 1
    STUB.write_text(wanted, encoding="utf-8")
    print(f"{STUB.name} written")
    return 0


def records() -> list[RecordType]:
    declared: list[RecordType] = json.loads(_native._declaration())["records"]  # noqa: SLF001 - made for this script
    return declared


def written(stub: str, declared: list[RecordType]) -> str:
    """The stub with its record classes as declared."""
    before, _, rest = stub.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        sys.exit(f"{STUB.name} lacks the two marker lines")
    return before + BEGIN + "".join(map(record_class, declared)) + END + after


def record_class(record: RecordType) -> str:
    lines = ["@final", f"class {record['name']}(Record):", f'    """{record["doc"]}"""', ""]
    lines += ["    __match_args__ = (", *(f'        "{field["name"]}",' for field in record["fields"]), "    )"]
    lines += ["    def __new__("]
    lines += ["        cls,", "        *,"]
    lines += [f"        {field['name']}: {field['python']} | None = None," for field in record["fields"]]
    lines += ["    ) -> Self: ..."]
    for field in record["fields"]:
        lines += ["    @property", f"    def {field['name']}(self) -> {field['python']} | None:"]
        lines += [f'        """{field["doc"]}"""', ""]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
