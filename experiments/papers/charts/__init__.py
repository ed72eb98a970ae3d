"""From the results of steps to charts: what is drawn, what the paper says in numbers, what differs here and why."""

from .amqp import amqp_links, amqp_suite
from .bdqs import bdqs, sqs_peers
from .cmq import cmq, cmq_profile, cmq_soak, cmq_sweep
from .elastic import elastic_peers, eqs
from .scaling import scaling
from .stock_exchange import stock_exchange

CHARTS = {
    "amqp-suite": amqp_suite, "amqp-links": amqp_links, "stock-exchange": stock_exchange, "cmq": cmq, "cmq-sweep": cmq_sweep,
    "cmq-soak": cmq_soak, "cmq-profile": cmq_profile, "elastic-peers": elastic_peers, "eqs": eqs, "sqs-peers": sqs_peers, "bdqs": bdqs, "scaling": scaling,
}


def of_step(name, results):
    return [one for one in CHARTS[name](results) if one]
