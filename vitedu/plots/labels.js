// The sliders of ipywidgets have no name for screen readers, and its pictures no description.
// Version 7's sliders are none at all for them. The script is an output of its own: a widget of
// HTML runs none, and one of version 7 that holds outputs does not either.
(function (script) {
  // on Colab a cell's outputs are a page
  const outputs = script.closest(".jp-OutputArea") ?? document.body
  function set(element, values) {
    for (const [name, value] of Object.entries(values))
      if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
  function label() {
    const sliders = ".vitedu-explorer .widget-slider, .vitedu-explorer .widget-hslider"
    for (const slider of outputs.querySelectorAll(sliders)) {
      const value = slider.querySelector(".widget-readout")
      const handle = slider.querySelector(".noUi-handle, .ui-slider-handle")
      if (!handle || !value) continue
      const name = slider.querySelector("label, .widget-label").textContent
      set(handle, {"aria-label": name, "aria-valuetext": value.textContent})
      const percent = String(parseFloat(handle.style.left))  // of its way
      if (handle.matches(".ui-slider-handle"))
        set(handle, {role: "slider", "aria-valuenow": percent})
    }
    for (const box of outputs.querySelectorAll(".vitedu-explorer")) {
      for (const cells of box.querySelectorAll(".vitedu-cells"))
        set(cells, {"aria-hidden": "true"})  // the slider says it all
      const words = box.querySelector("[role=status]"), picture = box.querySelector("img")
      if (words && picture) set(picture, {alt: words.textContent})
    }
  }
  const all = {childList: true, subtree: true, characterData: true}
  new MutationObserver(label).observe(outputs, all)
  label()
})(document.currentScript)
