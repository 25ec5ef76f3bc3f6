// What reading on a screen adds. Without it every section is open, and every figure is in a table.
"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const sections = all("details");

  // Sections: what is for later begins folded; links, paper and the button open it.
  all("details[data-folded]").forEach((one) => { one.open = false; });
  const openTo = (target) => {
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  };
  const followLink = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) { openTo(target); target.scrollIntoView(); }
  };
  all("nav a").forEach((link) => link.addEventListener("click", () => setTimeout(followLink)));
  addEventListener("hashchange", followLink);
  followLink();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = sections.filter((one) => !one.open);
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
  const button = document.querySelector("button[data-unfold]");
  const isAnyClosed = () => sections.some((one) => !one.open);
  const name = () => { button.textContent = isAnyClosed() ? "Open all sections" : "Close all sections"; };
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = isAnyClosed();
      sections.forEach((one) => { one.open = open; });
    });
    sections.forEach((one) => one.addEventListener("toggle", name));
    name();
  }

  // Contents: the section that is being read is marked.
  const links = new Map(all("nav a").map((link) => [link.getAttribute("href").slice(1), link]));
  const read = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => {
    links.forEach((link) => link.removeAttribute("aria-current"));
    links.get(one.target.id).setAttribute("aria-current", "true");
  }), { rootMargin: "-10% 0px -80% 0px" });
  all("details.section").filter((one) => links.has(one.id)).forEach((one) => read.observe(one));

  // Pictures can be saved: as they are drawn, in the colours of the page, on its paper.
  const colours = getComputedStyle(document.documentElement);
  const inColours = (text) => text.replace(/var\((--\w+)\)/g, (_, name) => colours.getPropertyValue(name).trim())
    .replace(/currentColor/g, colours.getPropertyValue("--ink").trim());
  const asFile = (drawing) => {
    const copy = drawing.cloneNode(true);
    const box = drawing.viewBox.baseVal;
    copy.removeAttribute("style");
    copy.setAttribute("width", `${box.width}pt`);
    copy.setAttribute("height", `${box.height}pt`);
    copy.setAttribute("font-family", "sans-serif");
    copy.insertAdjacentHTML("afterbegin", `<rect width="100%" height="100%" fill="var(--paper)"/>`);
    return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(inColours(new XMLSerializer().serializeToString(copy)))}`;
  };
  all("button[data-save]").forEach((save) => {
    save.hidden = false;
    save.addEventListener("click", () => {
      const link = document.createElement("a");
      link.download = save.dataset.save;
      link.href = asFile(save.parentElement.querySelector("svg"));
      link.click();
    });
  });

  // Hints: what a mark says, at once and also by a tap; the browser's own slower hint makes way.
  const hint = document.createElement("div");
  hint.className = "hint";
  hint.hidden = true;
  hint.setAttribute("aria-hidden", "true");
  document.body.append(hint);
  const show = (mark, text) => {
    hint.textContent = text;
    hint.hidden = false;
    const box = mark.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - hint.offsetWidth / 2, 4), innerWidth - hint.offsetWidth - 4);
    const above = box.top - hint.offsetHeight - 6;
    hint.style.left = `${left + scrollX}px`;
    hint.style.top = `${(above > 4 ? above : box.bottom + 6) + scrollY}px`;
  };
  all(".tip").forEach((mark) => {
    const title = mark.querySelector("title");
    const text = title.textContent;
    title.remove();
    mark.addEventListener("pointerenter", () => show(mark, text));
    mark.addEventListener("pointerleave", () => { hint.hidden = true; });
  });

  // Sliders: walk along a drawing, say what holds there, and mark the place.
  all(".slider").forEach((slider) => {
    const input = slider.querySelector("input");
    const output = slider.querySelector("output");
    const [places, texts] = [JSON.parse(slider.dataset.places), JSON.parse(slider.dataset.texts)];
    const marks = all(".tip", slider.closest("figure"));
    const move = () => {
      output.replaceChildren(...texts[input.value].split("\n").map((text) => {
        const line = document.createElement("span");
        line.textContent = text;
        return line;
      }));
      input.setAttribute("aria-valuetext", places[input.value]);
      marks.forEach((mark, place) => mark.classList.toggle("shown", place === Number(input.value)));
    };
    input.addEventListener("input", move);
    slider.hidden = false;
    move();
  });
})();
