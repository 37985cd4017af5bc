"""`holdfast key`: make, check and rotate the key of a store, or give it new keys."""

from __future__ import annotations

from pathlib import Path

import click

import holdfast
from holdfast._api.address import shown_address
from holdfast._api.plugins import write_key_file
from holdfast._values.caller_key import CallerKey
from holdfast.cli import _command
from holdfast.cli._given_key import FILE, PASSPHRASE, key_in
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag

ACTIONS = ("init", "check", "rotate", "rekey")


@_command.command("key")
@click.argument("action", type=click.Choice(ACTIONS), metavar="ACTION")
@click.argument("file", required=False)
@flag("--owners", help="init: make a key with a secret for each owner.")
@flag("--passphrase", help="Ask for a new passphrase instead of a key FILE.")
@click.option("--to", metavar="ADDRESS", help="rekey: the store that gets new keys.")
def command(
    cli: Invocation,
    *,
    action: str,
    file: str | None,
    owners: bool,
    passphrase: bool,
    to: str | None,
) -> None:
    """Make, check or rotate the key of an encrypted store, or give it new keys.

    ACTION is one of these: `key init FILE` makes a new FILE with a key, with `--owners`
    one from which `erase` removes what an owner's data are read with, `key check`
    tells whether the key opens the store, `key rotate FILE` lets the key in FILE open
    the store from now on, and the key before no more. `key rekey FILE --to ADDRESS`
    encrypts everything again with new keys, into a store at ADDRESS that the key in
    FILE opens; programs can use the old store meanwhile, and running it again brings
    the new one up to date. All commands take the key of the
    store from the file that HOLDFAST_KEY_FILE names, or the passphrase in
    HOLDFAST_PASSPHRASE.
    """
    if action == "init":
        _init(cli, _named(file), owners=owners)
    elif action == "check":
        _check(cli)
    else:
        key = _asked() if passphrase else key_in(Path(_named(file)))
        _rotate(cli, key) if action == "rotate" else _rekey(cli, key, to)


def _init(cli: Invocation, file: str, *, owners: bool) -> None:
    write_key_file(file, owners=owners)
    cli.out.done("key/1", {"action": "init", "file": file}, (file, "name"))
    cli.out.note(f"{FILE}={file} names it; without a copy of it nothing can be read")


def _check(cli: Invocation) -> None:
    with cli.reading() as store:
        encrypted = store.runner.context.keys is not None
    text = "encrypted, and the key opens it" if encrypted else "not encrypted"
    cli.out.done("key/1", {"action": "check", "encrypted": encrypted}, (text, ""))


def _rotate(cli: Invocation, key: CallerKey) -> None:
    with cli.writing() as store:
        store.rotate_key(key)
    cli.out.done("key/1", {"action": "rotate"}, ("rotated", "good"))
    cli.out.note(f"from now on: {PASSPHRASE if isinstance(key, str) else FILE}=...")


def _rekey(cli: Invocation, key: CallerKey, to: str | None) -> None:
    if to is None:
        raise click.UsageError("say where with --to ADDRESS")
    with (
        cli.reading() as store,
        holdfast.open(to, key=key) as other,
        cli.progress("Encrypting") as progress,
    ):
        copied = store.copy_to(other, update=True, progress=progress)
    name = shown_address(to)
    document = {"action": "rekey", "to": name, "threads": copied.threads}
    cli.out.done("key/1", document, (name, "name"), (f"  {copied.threads} threads", ""))
    cli.out.note("stop the programs, run it again, and let them open the new store")


def _named(file: str | None) -> str:
    if file is None:
        raise click.UsageError("name the key FILE")
    return file


def _asked() -> str:
    asked: str = click.prompt(
        "New passphrase", hide_input=True, confirmation_prompt=True
    )
    return asked
