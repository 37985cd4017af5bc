"""Conversations and durable runs of Pydantic AI in a Holdfast store.

    Pydantic AI                      Holdfast
    -----------                      --------
    conversation                     thread "pydantic_ai:<id>"
    entry                            element of its list "messages", unchanged
    record                           the other values of its state
    scope                            owner of the thread
    save                             one checkpoint, in one transaction
    fork                             fork, which shares the entries
    branch                           checkpoint; the end of the branch left is tagged
    durable run                      thread "pydantic_ai_run:<id>"
    model request, tool call         checkpoint; its result is in the list "steps"
    tool declared `holdfast.once`    effect in the journal of the run

The classes here only translate; all state is in the store. Needs the extra:
``pip install 'holdfast[pydantic-ai]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("pydantic_ai.conversation_store", "Pydantic AI", "pydantic-ai")

from holdfast.adapters.pydantic_ai._conversations import (  # noqa: E402 - see above
    HoldfastConversationStore,
)
from holdfast.adapters.pydantic_ai._durability import (  # noqa: E402 - see above
    HoldfastDurability,
)

__all__ = ["HoldfastConversationStore", "HoldfastDurability"]
