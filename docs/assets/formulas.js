// Draw the formulas of a page: KaTeX, from this site.
for (const one of document.querySelectorAll(".arithmatex")) {
  const text = one.textContent.trim();
  katex.render(text.slice(2, -2), one, { displayMode: text.startsWith("\\["), throwOnError: false });
}
