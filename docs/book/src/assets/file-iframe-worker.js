// Search on pages opened from files, where browsers start no workers: a Worker that runs its script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const scope = this.frame.contentWindow;
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = scope.document.createElement("script");
          script.onload = loaded;
          script.onerror = failed;
          script.src = new URL(source, location.href).href;
          scope.document.body.append(script);
        });
      // What the script calls as a worker: messages to the page, and further scripts.
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = (...sources) => Promise.all(sources.map(load));
      this.ready = load(url);
    }
    postMessage(data) {
      const scope = this.frame.contentWindow;
      this.ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
    }
    set onmessage(listener) {
      this.addEventListener("message", listener);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
