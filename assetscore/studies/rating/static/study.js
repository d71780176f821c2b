"use strict";
// Keys: y, n, u answer the marked question (the first without an answer, else the last one touched); Enter goes on; b goes back.
const form = document.getElementById("answers");
const sets = Array.from(form.querySelectorAll("fieldset"));
const keys = { y: "yes", n: "no", u: "unsure", 1: "yes", 2: "unsure", 3: "no" };
let touched = null;

function current() {
  const open = sets.find((set) => !set.querySelector("input:checked"));
  return open || touched || sets[sets.length - 1];
}

function mark() {
  const now = current();
  sets.forEach((set) => set.classList.toggle("current", set === now));
}

form.addEventListener("change", (event) => {
  touched = event.target.closest("fieldset");
  mark();
});

form.addEventListener("submit", () => {
  // a second press must not send the same answers twice
  document.getElementById("next").disabled = true;
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const answer = keys[event.key.toLowerCase()];
  if (answer) {
    const set = current();
    const input = set.querySelector(`input[value="${answer}"]`);
    input.checked = true;
    touched = set;
    mark();
    event.preventDefault();
  } else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "A") {
    event.preventDefault();
    form.requestSubmit(document.getElementById("next"));
  } else if (event.key.toLowerCase() === "b") {
    const back = document.getElementById("back");
    if (back) back.click();
  }
});

window.addEventListener("pageshow", () => {
  document.getElementById("next").disabled = false;
  mark();
});
