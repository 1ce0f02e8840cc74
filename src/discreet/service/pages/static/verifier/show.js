// The steps of a check, as people read them. Only text is ever put into the page.
import { canCheckSignatures } from "./notes.js";

export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Shows a form if this browser can do what it is for, and says why if it cannot.
export async function offer(form, place, command) {
  if (await canCheckSignatures()) {
    form.hidden = false;
    return true;
  }
  const why = window.isSecureContext
    ? "This browser cannot check Ed25519 signatures (Web Crypto lacks them). Newer ones can."
    : "Browsers check signatures only on pages that came over HTTPS, or from this machine.";
  place.hidden = false;
  place.classList.add("notice", "warn");
  place.replaceChildren(element("p", why), element("p", "Nothing was checked. On the command line:"),
    element("code", command));
  return false;
}

// lines: [{title, text, isGood}] with isGood null for what was not asked.
export function verdict(place, title, isGood, lines) {
  const head = element("h2", `${isGood ? "\u2713" : "\u2717"} ${title}`, isGood ? "good-mark" : "bad-mark");
  const list = element("ol", "", "proofs");
  for (const one of lines) {
    const mark = one.isGood === null ? "\u2013" : one.isGood ? "\u2713" : "\u2717";
    const item = element("li", "", one.isGood === null ? "" : one.isGood ? "good" : "bad");
    item.append(element("strong", `${mark} ${one.title}`), element("p", one.text, "small"));
    list.append(item);
  }
  place.dataset.verdict = isGood ? "good" : "bad";
  place.replaceChildren(head, list);
}
