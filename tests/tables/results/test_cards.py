"""Cards say everything about a release but its values."""

import json

import pytest

from discreet.accounting import PureLoss, from_json
from discreet.errors import ParameterError
from discreet.ledger import Receipt
from discreet.tables import registry_entry, write_card
from discreet.tables.results.example import region_counts

CURATED = {
    "name": "Visits by region",
    "data_curators": ["A Bureau"],
    "description": "Counts of visits.",
    "intended_use": "Planning.",
    "data_product_region": "Utopia",
    "registry_authors": ["Ana"],
}
# The fields of the public registry, as of July 2026: those required, and all that may be there.
REQUIRED = {"name", "data_curators", "description", "intended_use", "data_product_type",
            "data_product_region", "publication_date"}  # fmt: skip
ALLOWED = {
    "basic": REQUIRED | {"data_product_sector"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters",
                     "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "actors", "release_type",
                         "release_type_details", "data_source_type", "data_source_type_details",
                         "access_type", "access_type_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "notes", "registry_authors"},
}  # fmt: skip


def test_a_card_is_json_and_has_what_a_reader_needs():
    card = json.loads(json.dumps(region_counts().card(), allow_nan=False))
    assert card["privacy"] == {
        "unit": "all records of one user_id", "neighbours": "add_remove", "epsilon": 0.5,
        "delta": 1e-8, "variant": "Approximate DP",
    }  # fmt: skip
    assert card["bounds"]["contributions"]["limit"] == 5
    assert card["bounds"]["values"][0]["bounds"] == [0, 200000]
    assert [m["noise"] for m in card["mechanisms"]] == ["gaussian", "gaussian"]
    assert card["evidence"]["entries"][0]["index"] == 7
    assert "docs/proofs/key_thresholds.md" in card["evidence"]["proofs"]
    assert card["software"]["version"]
    loss = region_counts().loss
    assert from_json(json.dumps(card["accounting"]["loss"])) == loss


def test_a_card_has_no_released_value_and_no_key():
    text = json.dumps(region_counts().card())
    for value in ("12340", "41203", "north", "17.9"):
        assert value not in text


def test_notes_and_changes_are_kept_apart():
    card = region_counts(notes=("Small groups are missing.",)).rounded().card()
    assert card["notes"] == ["Small groups are missing."]
    assert [note.split(":")[0] for note in card["post_processing"]] == ["n"]


def test_a_card_of_few_facts_works():
    bare = region_counts(facts={}, delta=0, loss=PureLoss(epsilon=0.5))
    card = bare.card()
    assert card["privacy"]["variant"] == "Pure DP"
    assert registry_entry(card, **CURATED)["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": 0.5
    }


def test_seeded_noise_is_on_the_card():
    seeded = Receipt(bodies=('{"account":"people","index":7,"noise":"seeded"}',))
    assert "SEEDED" in region_counts(receipt=seeded).card()["sampling"]


def test_an_entry_fits_the_registry():
    entry = registry_entry(region_counts().card(), **CURATED)
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    assert entry["url_slug"] == "visits-by-region"
    deployment = entry["deployment"]
    assert set(deployment) <= set(ALLOWED)
    for part, fields in deployment.items():
        assert set(fields) <= ALLOWED[part], part
    assert set(deployment["basic"]) >= REQUIRED
    assert deployment["basic"]["publication_date"] == "2026-11-15"
    assert deployment["basic"]["data_product_type"] == "Summary statistics"
    assert deployment["dp_variant"]["variant_name"] in ("Pure DP", "Approximate DP")
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert "rows of one unit" in deployment["privacy_loss"]["privacy_unit_details"]
    assert "gaussian" in deployment["implementation"]["mechanisms"]
    texts = [v for part in deployment.values() for v in part.values() if isinstance(v, str)]
    assert all(texts)


# What the registry's tiers ask for, from its schema as of November 2026.
TIERS = {
    2: ["dp_variant.variant_name", "privacy_loss.privacy_unit", "privacy_loss.privacy_parameters",
        "deployment_model.model_name", "deployment_model.release_type",
        "deployment_model.data_source_type", "deployment_model.access_type"],
    3: ["dp_variant.data_domain", "dp_variant.unprotected_quantities",
        "privacy_loss.privacy_unit_details", "privacy_loss.privacy_parameters_details",
        "deployment_model.actors", "accounting.post_processing", "accounting.composition",
        "implementation.preprocessing_and_hyperparameter_tuning", "implementation.mechanisms",
        "implementation.justification"],
}  # fmt: skip
TOLD = {
    "data_source_type": "Static",
    "data_domain": "All sets of visits.",
    "actors": "A Bureau sees the data, everybody the counts.",
    "justification": "As for the census.",
}


def _deserved(deployment):
    """Return the tier of an entry by the list above."""
    for tier, fields in TIERS.items():
        for field in fields:
            part, name = field.split(".")
            if not deployment[part].get(name):
                return tier - 1
    return 3


@pytest.mark.parametrize("left_out", [None, *TOLD, "unit", "neighbours"])
def test_an_entry_claims_the_tier_whose_fields_it_fills(left_out):
    facts = {**region_counts().facts}
    facts.pop(left_out, None)
    told = {name: text for name, text in TOLD.items() if name != left_out}
    entry = registry_entry(region_counts(facts=facts).card(), **CURATED, **told)
    assert entry["tier"] == _deserved(entry["deployment"])
    assert entry["tier"] == {None: 3, "data_source_type": 1, "unit": 1}.get(left_out, 2)
    assert set(entry["deployment"]["deployment_model"]) <= ALLOWED["deployment_model"]


def test_an_entry_knows_two_types_of_sources():
    with pytest.raises(ParameterError, match="'Static' or 'Dynamic'"):
        registry_entry(region_counts().card(), **CURATED, data_source_type="static")


def test_an_answer_from_before_keeps_its_deviation_in_rows():
    facts = {"aggregates": [{"kind": "sum", "text": "SUM(x)", "noise": "laplace", "deviation": 2}]}
    old = region_counts(facts=facts)
    assert old.card()["mechanisms"][0]["deviation_in_rows"] == 2
    told = registry_entry(old.card(), **CURATED)["deployment"]["implementation"]["mechanisms"]
    assert "standard deviation 2 in rows" in told
    assert "in rows, on each of the sums" in " ".join(old.explain().split())


def test_an_entry_needs_a_date():
    undated = region_counts(receipt=Receipt(bodies=('{"account":"people","index":7}',))).card()
    with pytest.raises(ParameterError, match="publication_date"):
        registry_entry(undated, **CURATED)
    dated = registry_entry(undated, **CURATED, publication_date="2026-01-02")
    assert dated["deployment"]["basic"]["publication_date"] == "2026-01-02"


def test_cards_are_written_for_programs_and_for_people(tmp_path):
    card = region_counts().card()
    for suffix in ("json", "yaml", "yml"):
        path = write_card(card, tmp_path / f"card.{suffix}")
        assert json.loads(path.read_text(encoding="utf-8")) == card
    text = write_card(card, tmp_path / "card.md").read_text(encoding="utf-8")
    assert "## Privacy" in text
    assert "| epsilon | 0.5 |" in text
    with pytest.raises(ParameterError, match=r"\.json"):
        write_card(card, tmp_path / "card.pdf")


def test_a_question_cannot_bring_markup_into_a_card(tmp_path):
    evil = "SELECT '<script>x</script>' | [a](javascript:b) `c`\n# title \x1b[31m"
    card = region_counts(question=evil).card()
    text = write_card(card, tmp_path / "card.md").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\n# title" not in text
    assert "[a](" not in text
