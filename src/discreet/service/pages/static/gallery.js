// Beside a slider stands what it is at, while it moves.
document.addEventListener("input", ({ target }) => {
  const shown = target.form?.querySelector(`output[for="${target.id}"]`);
  if (!shown) return;
  shown.textContent = shown.dataset.power ? `1e-${target.value}` : target.value + (shown.dataset.unit ?? "");
});
for (const button of document.querySelectorAll("form[hx-get] > button")) button.hidden = true;
