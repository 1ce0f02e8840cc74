// Before anything is drawn: the theme that the reader chose, or else that of the system.
(() => {
  const chosen = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
