"""The programs of the README, as they are written."""

import pathlib
import re


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(programs) == 3
    exec("".join(programs), {})
