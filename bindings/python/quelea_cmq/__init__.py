"""CMQ, a message queue without a broker: batches over UDP, as reliable as each destination asks for.

    with Endpoint("127.0.0.1:4711") as here:
        here.dest("127.0.0.1:4711/7").push(b"hello")
        print(here.queue(7).pop().bytes)

:class:`Endpoint` is a socket, :class:`Dest` sends to one mailbox, :class:`Queue` receives from one.
:func:`new_rq` gives the paper's interface over values instead of bytes.
"""

from quelea_cmq import codec, errors
from quelea_cmq._core import Dest, Endpoint, Message, Queue, __version__
from quelea_cmq.address import Address, AddressLike, Key, KeyLike
from quelea_cmq.errors import *  # noqa: F403
from quelea_cmq.mode import Mode, Wire, WhenFull
from quelea_cmq.typed import Cmq, Received, new_rq
