"""A Trainer on a private run: its steps are the run's steps, and no other Trainer is accepted."""

import importlib
import json
import math
import sys
import warnings

import pytest
import torch

from discreet.accounting import epsilon
from discreet.errors import DataError, MissingExtra, ParameterError
from discreet.learn import Stages, prepare, resume
from discreet.learn.huggingface import make_trainer, per_example_loss, privacy_callback
from discreet.testing import SeededSource

pytestmark = pytest.mark.lengthy

VOCABULARY, LENGTH, ROWS = 13, 6, 60


def test_without_transformers_the_missing_package_is_named(monkeypatch):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    private = prepare(
        model,
        optimizer,
        (torch.randn(100, 2),),
        noise_multiplier=1,
        delta=1e-5,
        steps=1,
        batch_size=10,
        clip=1.0,
    )
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "discreet.learn.huggingface.trainer", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install transformers\[torch\]"):
        privacy_callback(private)
    with pytest.raises(MissingExtra):
        make_trainer(private, args=None)


@pytest.fixture(scope="module")
def transformers():
    found = importlib.import_module("transformers")
    found.logging.set_verbosity_error()
    with pytest.MonkeyPatch.context() as patch:
        # The folder tests/datasets looks like a package of that name to those who search for one.
        patch.setattr("transformers.trainer.is_datasets_available", lambda: False)
        yield found


def small(transformers, kind: str, **settings):
    torch.manual_seed(5)
    if kind.startswith("GPT2"):
        config = transformers.GPT2Config(
            n_layer=1,
            n_head=2,
            n_embd=8,
            vocab_size=VOCABULARY,
            n_positions=LENGTH,
            bos_token_id=0,
            eos_token_id=0,
            **settings,
        )
    else:
        config = transformers.BertConfig(
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            vocab_size=VOCABULARY,
            max_position_embeddings=LENGTH,
            **settings,
        )
    return getattr(transformers, kind)(config)


def text(rows: int = ROWS) -> dict[str, torch.Tensor]:
    ids = torch.randint(VOCABULARY, (rows, LENGTH))
    labels = ids.clone()
    labels[:, 1] = -100
    labels[0] = -100  # a row that has nothing to say
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def run(model, data, *, steps=4, source=None, **settings):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    given = {"source": source} if source is not None else {}
    return prepare(
        model,
        optimizer,
        data,
        delta=1e-5,
        steps=steps,
        batch_size=20,
        progress=False,
        **given,
        **{"noise_multiplier": 1.0, "clip": 1.0} | settings,
    )


def arguments(transformers, folder, **settings):
    return transformers.TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        **{"save_strategy": "no", "logging_steps": 100, **settings},
    )


def quietly(trainer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch and transformers about each other
        return trainer.train()


# --- losses


@pytest.mark.parametrize(
    ("kind", "settings", "labels"),
    [
        ("GPT2LMHeadModel", {}, None),
        ("BertForMaskedLM", {}, None),
        ("BertForTokenClassification", {"num_labels": VOCABULARY}, None),
        ("BertForSequenceClassification", {"num_labels": 3}, torch.tensor([2, 0, 1, 1])),
        ("BertForSequenceClassification", {"num_labels": 1}, torch.randn(4)),
        ("BertForSequenceClassification", {"num_labels": 3}, torch.rand(4, 3).round()),
        ("BertForQuestionAnswering", {}, None),
    ],
)
def test_each_rows_loss_is_the_models_own_for_that_row_alone(transformers, kind, settings, labels):
    model = small(transformers, kind, **settings).eval()
    rows = text(5)
    rows = {name: value[1:] for name, value in rows.items()}
    if kind == "BertForQuestionAnswering":
        del rows["labels"]
        rows["start_positions"] = torch.tensor([0, 3, 5, 2])
        rows["end_positions"] = torch.tensor([1, 3, 0, 4])
    elif labels is not None:
        rows["labels"] = labels
    before = dict(rows)
    losses = per_example_loss(model, rows)
    assert losses.shape == (4,)
    assert rows.keys() == before.keys()
    for i in range(4):
        alone = {name: value[i : i + 1] for name, value in rows.items()}
        assert losses[i].item() == pytest.approx(model(**alone).loss.item(), rel=1e-5)


def test_a_row_without_labels_that_count_costs_nothing(transformers):
    model = small(transformers, "GPT2LMHeadModel").eval()
    assert per_example_loss(model, text())[0].item() == 0


def test_unknown_models_and_missing_labels_are_refused():
    class Unknown(torch.nn.Module):
        pass

    class ForCausalLM(torch.nn.Module):
        pass

    with pytest.raises(ParameterError, match="Unknown"):
        per_example_loss(Unknown(), {})
    with pytest.raises(ParameterError, match="'labels'"):
        per_example_loss(ForCausalLM(), {"input_ids": torch.zeros(1, 2)})


# --- the Trainer


def test_training_is_that_of_the_run_and_epsilon_is_logged(transformers, tmp_path):
    data = text()
    model = small(transformers, "GPT2LMHeadModel", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    reference = small(transformers, "GPT2LMHeadModel", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    private = run(model, data, source=SeededSource(3))
    trainer = make_trainer(
        private,
        args=arguments(transformers, tmp_path, lr_scheduler_type="constant", logging_steps=1),
    )
    result = quietly(trainer)
    assert private.steps_taken == result.global_step == 4

    plain = run(reference.train(), data, source=SeededSource(3))
    for batch in plain.batches():
        plain.step(batch, per_example_loss)
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(ours, theirs)

    history = trainer.state.log_history
    epsilons = [entry["epsilon"] for entry in history]
    assert len(epsilons) == 5  # one for each step and one at the end
    assert 0 < epsilons[0] < epsilons[1] < epsilons[2] < epsilons[3] == epsilons[4]
    assert epsilons[-1] == private.spent.epsilon
    shown = json.dumps(history) + json.dumps(result.metrics)
    assert "loss" not in shown
    assert "grad_norm" not in shown
    assert math.isnan(result.training_loss)


def test_the_schedule_reaches_the_optimiser_of_the_run(transformers, tmp_path):
    private = run(small(transformers, "BertForMaskedLM"), text())
    trainer = make_trainer(
        private,
        args=arguments(transformers, tmp_path, lr_scheduler_type="linear", logging_steps=2),
    )
    quietly(trainer)
    rates = [e["learning_rate"] for e in trainer.state.log_history if "learning_rate" in e]
    assert rates[0] > rates[-1]
    assert private.optimizer.param_groups[0]["lr"] == 0  # at the end of the planned steps


def test_a_smaller_number_of_steps_ends_the_run_early(transformers, tmp_path):
    private = run(small(transformers, "BertForMaskedLM"), text())
    trainer = make_trainer(private, args=arguments(transformers, tmp_path, max_steps=2))
    quietly(trainer)
    assert private.steps_taken == 2
    again = make_trainer(private, args=arguments(transformers, tmp_path, num_train_epochs=7))
    quietly(again)
    assert private.steps_taken == private.steps_planned == 4


def test_evaluation_in_between_leaves_the_modes_of_training(transformers, tmp_path):
    model = small(transformers, "BertForSequenceClassification", num_labels=2)
    data = text() | {"labels": torch.randint(2, (ROWS,))}
    private = run(model.train(), data)
    model.bert.embeddings.dropout.eval()  # as frozen parts are
    rows = [{name: value[i] for name, value in data.items()} for i in range(8)]
    trainer = make_trainer(
        private,
        args=arguments(transformers, tmp_path, eval_strategy="steps", eval_steps=1),
        eval_dataset=rows,
    )
    quietly(trainer)
    assert private.steps_taken == 4
    assert sum("eval_loss" in entry for entry in trainer.state.log_history) == 4
    assert not model.bert.embeddings.dropout.training


def test_a_checkpoint_of_the_trainer_has_the_run_in_it(transformers, tmp_path):
    data = text()
    private = run(small(transformers, "GPT2LMHeadModel"), data)
    made = arguments(transformers, tmp_path, save_strategy="steps", save_steps=3, max_steps=3)
    quietly(make_trainer(private, args=made))
    private.close()
    model = small(transformers, "GPT2LMHeadModel")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    path = tmp_path / "checkpoint-3" / "private.pt"
    again = resume(path, model, optimizer, data, progress=False)
    trainer = make_trainer(again, args=arguments(transformers, tmp_path))
    with pytest.raises(ParameterError, match=r"discreet\.learn\.resume"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert quietly(trainer).global_step == 1
    assert again.steps_taken == again.spent.steps == 4


def test_a_plain_trainer_is_refused_before_anything_is_spent(transformers, tmp_path):
    data = text()
    model = small(transformers, "GPT2LMHeadModel")
    private = run(model, data)
    rows = [{name: value[i] for name, value in data.items()} for i in range(ROWS)]
    before = [p.detach().clone() for p in model.parameters()]
    plain = transformers.Trainer(
        model=model,
        args=arguments(transformers, tmp_path),
        train_dataset=rows,
        callbacks=[privacy_callback(private)],
    )
    with pytest.raises(ParameterError, match="no callback can make private"):
        quietly(plain)
    assert private.spent.epsilon == 0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_the_batches_of_another_run_are_refused(transformers, tmp_path):
    model = small(transformers, "GPT2LMHeadModel")
    other = run(small(transformers, "GPT2LMHeadModel"), text())
    trainer = make_trainer(
        run(model, text()),
        args=arguments(transformers, tmp_path),
        callbacks=[privacy_callback(other)],
    )
    with pytest.raises(ParameterError, match="of its own"):
        quietly(trainer)


def test_steps_that_bypass_the_run_are_noticed(transformers, tmp_path):
    private = run(small(transformers, "GPT2LMHeadModel"), text())
    trainer = make_trainer(private, args=arguments(transformers, tmp_path))
    trainer.training_step = lambda *args: torch.zeros(())
    with pytest.raises(ParameterError, match="not a step of the private run"):
        quietly(trainer)


@pytest.mark.parametrize(
    "settings",
    [
        {"gradient_accumulation_steps": 2},
        {"label_smoothing_factor": 0.1},
        {"auto_find_batch_size": True},
        {"torch_compile": True},
    ],
)
def test_arguments_that_would_leave_the_run_are_refused(transformers, tmp_path, settings):
    private = run(small(transformers, "GPT2LMHeadModel"), text())
    made = arguments(transformers, tmp_path, **settings)
    with pytest.raises(ParameterError) as caught:
        make_trainer(private, args=made)
    assert caught.value.parameter in settings


def test_what_the_run_decides_cannot_be_given_again(transformers, tmp_path):
    model = small(transformers, "GPT2LMHeadModel")
    private = run(model, text())
    made = arguments(transformers, tmp_path)
    for name in ("model", "train_dataset", "optimizers"):
        with pytest.raises(ParameterError, match=name):
            make_trainer(private, args=made, **{name: None})
    with pytest.raises(ParameterError, match="TrainingArguments"):
        make_trainer(private, args={})


def test_stages_go_on_inside_a_trainer(transformers, tmp_path):
    private = run(
        small(transformers, "GPT2LMHeadModel"),
        text(),
        noise_multiplier=Stages((1, 4.0), then=2.0),
        clip=Stages((3, 1.0), then=0.5),
    )
    trainer = make_trainer(private, args=arguments(transformers, tmp_path, logging_steps=1))
    quietly(trainer)
    step = [private._promise.sampling.loss(noise_multiplier=z) for z in (4.0, 2.0)]
    logged = [entry["epsilon"] for entry in trainer.state.log_history][:4]
    wanted = [epsilon(step[0] + step[1] * n, delta=1e-5) for n in range(4)]
    assert logged == pytest.approx(wanted, rel=1e-4)
    assert private.clip == 0.5


def test_the_arguments_of_the_user_are_left_alone(transformers, tmp_path):
    private = run(small(transformers, "GPT2LMHeadModel"), text())
    made = arguments(transformers, tmp_path)
    make_trainer(private, args=made)
    assert made.max_steps == -1
    assert made.max_grad_norm == 1


def test_what_a_loss_says_when_it_fails_is_withheld(transformers, tmp_path):
    private = run(small(transformers, "GPT2LMHeadModel"), text())
    pay, paid = private._pay, []
    private._pay = lambda noise: (paid.append(True), pay(noise))

    def fails(model, batch):
        if paid:
            raise ValueError("odd tokens: 3 1 4")
        return per_example_loss(model, batch)

    trainer = make_trainer(private, args=arguments(transformers, tmp_path), loss_fn=fails)
    with pytest.raises(DataError, match="stays paid for") as found:
        quietly(trainer)
    assert found.value.__cause__ is found.value.__context__ is None
    assert private.spent.steps == 1


def test_another_number_of_processes_than_the_runs_is_refused(transformers, tmp_path, monkeypatch):
    private = run(small(transformers, "GPT2LMHeadModel"), text())
    made = arguments(transformers, tmp_path)
    monkeypatch.setattr(transformers.TrainingArguments, "world_size", 2)
    with pytest.raises(ParameterError, match=r"in 2 processes, but the run was prepared in 1"):
        make_trainer(private, args=made)
