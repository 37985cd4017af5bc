"""Entries of transcripts, as the command line of Claude writes them."""

from __future__ import annotations

PROJECT = "-home-ann-atlas"
SESSION = "6f2c0d4e-9a51-4b7e-8c1d-0f3a5b7c9d11"
OTHER = "7a3d1e5f-0b62-4c8f-9d2e-1a4b6c8d0e22"
KEY = {"project_key": PROJECT, "session_id": SESSION}
AGENT = {**KEY, "subpath": "subagents/agent-1"}


def id_of(number):
    """A uuid that tells its number."""
    return f"00000000-0000-4000-8000-{number:012d}"


def said(number, text, **more):
    """What the user said."""
    message = {"role": "user", "content": text}
    return {**_about(number), "type": "user", "message": message, **more}


def replied(number, text, *calls):
    """What the model replied, with the calls it makes."""
    used = [
        {"type": "tool_use", "id": id_, "name": name, "input": input_}
        for id_, name, input_ in calls
    ]
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-7",
        "content": [{"type": "text", "text": text}, *used],
    }
    return {**_about(number), "type": "assistant", "message": message}


def result(number, call, text):
    """What a tool gave."""
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    message = {"role": "user", "content": [block]}
    return {**_about(number), "type": "user", "message": message}


def titled(title):
    """A title; such an entry has no uuid."""
    return {"type": "custom-title", "customTitle": title, "sessionId": SESSION}


def _about(number):
    return {
        "uuid": id_of(number),
        "parentUuid": id_of(number - 1) if number else None,
        "sessionId": SESSION,
        "isSidechain": False,
        "cwd": "/home/ann/atlas",
        "gitBranch": "main",
        "timestamp": f"2026-11-16T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
    }
