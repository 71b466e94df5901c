// Browsers allow no workers on pages that are opened as files. There the search, which is a
// worker, runs in a hidden frame instead.
window.IFrameWorker = class extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.srcdoc = `<body><script src="${url}"></script></body>`;
    this.inner = new Promise((loaded) => {
      frame.onload = () => {
        const inner = frame.contentWindow;
        inner.postMessage = (data) =>
          this.dispatchEvent(new MessageEvent("message", { data }));
        inner.importScripts = async (...urls) => {
          for (const src of urls) await load(inner.document, src);
        };
        loaded(inner);
      };
    });
    document.body.append(frame);
  }

  postMessage(data) {
    this.inner.then((inner) => inner.dispatchEvent(new MessageEvent("message", { data })));
  }
};

function load(document, src) {
  return new Promise((onload, onerror) => {
    const script = Object.assign(document.createElement("script"), { src, onload, onerror });
    document.body.append(script);
  });
}

if (location.protocol === "file:") window.Worker = window.IFrameWorker;
