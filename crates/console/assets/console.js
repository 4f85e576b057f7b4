// Keeps a page up to date while it is looked at, and shortens one click. Every page works without.
"use strict";

(function theme() {
  const select = document.getElementById("theme");
  if (!select) return;
  document.documentElement.classList.add("scripted");
  select.addEventListener("change", () => select.form.requestSubmit());
})();

(function live() {
  const part = document.getElementById("live");
  const pulse = document.getElementById("pulse");
  if (!part || !window.EventSource) return;
  let source = null;

  const say = (text, state) => {
    pulse.textContent = text;
    pulse.dataset.state = state;
  };

  // Whoever reads with a keyboard or marks text keeps what is under the cursor.
  const isInUse = () => {
    const active = document.activeElement;
    const selection = document.getSelection();
    const marks = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
    return marks || (active && active !== document.body && part.contains(active));
  };

  const show = (markup) => {
    const open = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
    part.innerHTML = markup;
    for (const id of open) {
      const one = document.getElementById(id);
      if (one) one.open = true;
    }
  };

  const start = () => {
    if (source) return;
    source = new EventSource(part.dataset.live);
    source.addEventListener("open", () => say("Live", "on"));
    source.addEventListener("same", () => say("Live", "on"));
    source.addEventListener("live", (event) => {
      if (isInUse()) return say("Paused while you are in it", "paused");
      show(event.data);
      say("Live", "on");
    });
    source.addEventListener("over", () => {
      stop();
      say("Ended: reload the page", "off");
    });
    source.addEventListener("error", () => say("Not connected", "off"));
  };

  const stop = () => {
    if (source) source.close();
    source = null;
  };

  // A page in the background costs the broker nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  window.addEventListener("pagehide", stop);
  if (!document.hidden) start();
})();
