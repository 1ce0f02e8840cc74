"""A login sees the proven entries of its datasets, whatever their accounts are called."""

from types import SimpleNamespace

import pytest

from discreet.service.identity.login import Login, Role
from discreet.service.web.handlers.books import _may_see


def served(name, account):
    return SimpleNamespace(tables=SimpleNamespace(name=name, account=SimpleNamespace(name=account)))


@pytest.mark.parametrize(("dataset", "sees"), [("visits", True), ("people", False)])
def test_a_scope_names_datasets_and_not_accounts(dataset, sees):
    shelf = [served("visits", "people"), served("people", "others")]
    entry = {"account": "people", "who": "ana", "kind": "charge"}
    login = Login(who="audrey", roles=frozenset({Role.AUDITOR}), datasets=frozenset({dataset}))
    assert _may_see(SimpleNamespace(entries=(entry,)), login, shelf) == sees
