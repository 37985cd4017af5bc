"""Modules are joined to one script without a bundler, or refused by name."""

from __future__ import annotations

import pytest

from inner.viewer import joining


def joined(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return joining.script(folder)


def test_a_module_comes_once_and_after_what_it_imports(tmp_path):
    script = joined(
        tmp_path,
        app='import { b } from "./one.js";\nimport {\n  c as d,\n} from "./two.js";\n'
        "b(d);",
        one='import { c } from "./two.js";\nexport function b(x) { return x + c; }',
        two="const hidden = 1;\nexport const c = hidden;",
        unused="export const never = 1;",
    )

    places = [script.index(f"const module_{name} =") for name in ("two", "one", "app")]
    assert places == sorted(places)
    assert "const { c: d, } = module_two;" in script
    assert "import" not in script
    assert "never" not in script


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('import { app } from "./app.js";', "imports itself"),
        ('import { x } from "./none.js";', "does not exist"),
        ("export default 1;", "cannot be joined"),
        ('export { x } from "./other.js";', "cannot be joined"),
        ('const x = await import("./other.js");', "cannot be joined"),
        ('import all from "./other.js";', "cannot be joined"),
    ],
)
def test_what_cannot_be_joined_is_named(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        joined(tmp_path, app=text, other="")


def test_everything_that_the_page_needs_is_joined():
    script, style = joining.script(), joining.style()

    files = [file.name for file in joining.static().iterdir()]
    names = [name[:-3] for name in files if name.endswith(".js")]
    assert "app" in names
    assert all(f"const module_{name} =" in script for name in names)
    assert "@import" not in style
