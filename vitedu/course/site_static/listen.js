// A section's text, read by the voice that the reader's own computer has. Nothing is fetched or sent:
// a voice that works over the network is not used, and where no other is, there are no controls.

const speech = window.speechSynthesis
const READ = "p, li, dt, dd, summary, th, td, h1, h2, h3, h4" // in the order of the page
const LEFT_OUT = ".cell_input, .cell_output, .listen, .headerlink, script, style"
let stop = () => {} // stops whatever section is being read

function localVoice() {
  const language = document.documentElement.lang.slice(0, 2)
  return speech.getVoices().find(voice => voice.localService && voice.lang.startsWith(language))
}

// what is read of a section: its own text, without the sections in it, code, outputs and folded answers
function pieces(section) {
  return [...section.querySelectorAll(READ)].filter(
    part =>
      part.closest("section") === section &&
      !part.closest(LEFT_OUT) &&
      !part.parentElement.closest(READ) && // a paragraph in an item is read with the item
      (part.checkVisibility?.() ?? true) &&
      spoken(part)
  )
}

function spoken(part) {
  const copy = part.cloneNode(true)
  copy.querySelectorAll(LEFT_OUT).forEach(each => each.remove())
  return copy.textContent.replace(/\s+/g, " ").trim()
}

function addControls(section) {
  const heading = section.querySelector(":scope > h1, :scope > h2, :scope > h3, :scope > h4")
  if (!heading || pieces(section).length < 2) return // nothing below the heading but other sections
  const box = document.createElement("div"), start = document.createElement("button"), end = document.createElement("button")
  box.className = "listen"
  box.setAttribute("role", "group")
  box.setAttribute("aria-label", `Listen to: ${spoken(heading)}`)
  start.type = end.type = "button"
  end.textContent = "Stop"
  box.append(start, end)
  heading.after(box)

  let parts = [], at = 0, reading = null // the utterance that is being spoken

  function show() {
    start.textContent = reading ? "Pause" : at ? "Continue" : "Listen"
    end.hidden = !reading && !at
    parts.forEach((part, k) => part.classList.toggle("being-read", Boolean(reading) && k === at))
  }
  function halt() {
    reading = null
    speech.cancel()
    show()
  }
  function reset() {
    at = 0
    halt()
  }
  // pause() of speechSynthesis does not work in every browser: a pause stops, and goes on at the same paragraph
  function read() {
    if (at >= parts.length) return reset()
    const utterance = new SpeechSynthesisUtterance(spoken(parts[at]))
    utterance.voice = localVoice()
    utterance.lang = utterance.voice.lang
    utterance.onend = () => {
      if (utterance !== reading) return // it was stopped
      at += 1
      read()
    }
    utterance.onerror = () => utterance === reading && reset()
    reading = utterance
    show()
    speech.speak(utterance)
  }

  start.onclick = () => {
    if (reading) return halt()
    if (stop !== reset) stop()
    stop = reset
    if (!at) parts = pieces(section)
    read()
  }
  end.onclick = () => {
    reset()
    start.focus()
  }
  show()
}

function begin() {
  if (document.querySelector(".listen") || !localVoice()) return
  document.querySelectorAll("article section").forEach(addControls)
}

if (speech) {
  addEventListener("pagehide", () => speech.cancel())
  speech.addEventListener?.("voiceschanged", begin) // some browsers find their voices late
  document.readyState === "loading" ? addEventListener("DOMContentLoaded", begin) : begin()
}
