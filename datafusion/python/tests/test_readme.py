"""The programs of the README, as they are written, and the types of the module."""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent.parent


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)
    assert len(programs) == 2
    exec("".join(programs), {})


def test_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import pathlib\n"
        "import pleach_datafusion as pd\n"
        "session = pd.Session(partitions=2).register('t', pathlib.Path('x')).register('u', pd.Table('x'))\n"
        "rows: pd.Rows = session.sql('SELECT 1')\n"
        "names: list[str] = rows.columns\n"
        "pd.Session().register('v', rows)\n"
    )
    options = ["--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path / "cache")]
    command = [sys.executable, "-m", "mypy", *options, str(HERE / "pleach_datafusion"), str(program)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    assert run.returncode == 0, run.stdout + run.stderr
