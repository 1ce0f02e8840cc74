"""Price a question that was read, whatever its shape."""

from typing import TYPE_CHECKING

from discreet.accounting import Loss
from discreet.tables.engines.progress import time_limit
from discreet.tables.engines.protocol import Connection, SelectiveConnection
from discreet.tables.model.composite import Composite
from discreet.tables.model.query import Query
from discreet.tables.pricing.offer import Offer
from discreet.tables.pricing.payment import part_offer, prepare
from discreet.tables.pricing.prepared import Prepared, PreparedComposite
from discreet.tables.release.outer import check_outer
from discreet.tables.sql.question.refusals import refused

if TYPE_CHECKING:
    from discreet.tables.release.answer import Asker

__all__ = ["prepared_for"]


def prepared_for(
    question: str, found: Query | Composite, asker: "Asker", offer: Offer
) -> Prepared | PreparedComposite:
    """Price a question on an offer; what cannot be computed of released answers is refused."""

    def cost(loss: Loss) -> float:
        return asker.account.quote(loss, periods=offer.periods).share

    def priced(query: Query, offered: Offer) -> Prepared:
        _check_engine(query, asker.connection)
        return prepare(
            question, query, offer=offered, catalog=asker.catalog,
            guarantee=asker.account.guarantee, cost=cost, beside=asker.delta_beside,
        )  # fmt: skip

    if isinstance(found, Query):
        return priced(found, offer)
    with time_limit(asker.seconds):
        check_outer(found, asker.catalog, asker.connection)
    each = part_offer(offer, len(found.parts))
    return PreparedComposite(
        question=question, composite=found, parts=tuple(priced(part, each) for part in found.parts)
    )


def _check_engine(query: Query, connection: Connection) -> None:
    """Refuse what the engine of the tables cannot do, as long as it costs nothing."""
    word = connection.lacks(query.rows) if isinstance(connection, SelectiveConnection) else None
    if word is not None:
        raise refused("engine", line=1, column=1, word=word)
