"""Inner names of `_messages` and of the public modules over it."""

from holdfast._messages.dialects import INTERRUPTED, NOT_MADE
from holdfast._messages.forms import plain_form
from holdfast._messages.forms.google_adk import read as read_google_adk
from holdfast._messages.forms.llama_index import read as read_llama_index
from holdfast._messages.identity import canonical, masked
from holdfast._messages.item_calls import PAUSED_RUN
from holdfast._messages.repair import repaired
from holdfast._messages.tally import Tally, without_last
from holdfast._messages.transcript import (
    is_message,
    role_of,
    text_of,
    tokens_of,
    window,
)
from holdfast.agents import KINDS
from holdfast.conversations import LONGEST_TITLE
from holdfast.effects import UNDECLARED, Declaration, declaration_of
from holdfast.messages import stored
