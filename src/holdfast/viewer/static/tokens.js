// The token of the server: it comes in the fragment of the address, which browsers do
// not send, and is kept for this tab. A new tab asks the open ones.

const KEY = "holdfast-token";
const WAIT_MS = 1000;

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setToken(value) {
  sessionStorage.setItem(KEY, value);
}

// Moves the token out of the address, so that it is in no history and no copied link.
export async function takeToken() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found !== null) {
    setToken(found);
    history.replaceState(history.state, "", location.pathname + location.search);
  } else if (token() === "") {
    await askOtherTabs();
  }
  answerOtherTabs();
}

// Only pages of the same server, port included, hear a channel.
function askOtherTabs() {
  const channel = new BroadcastChannel(KEY);
  return new Promise((resolve) => {
    const done = () => (channel.close(), resolve());
    setTimeout(done, WAIT_MS);
    channel.onmessage = ({ data }) => {
      if (!data.token) return;
      setToken(data.token);
      done();
    };
    channel.postMessage({ ask: true });
  });
}

function answerOtherTabs() {
  const channel = new BroadcastChannel(KEY);
  channel.onmessage = ({ data }) => {
    if (data.ask && token() !== "") channel.postMessage({ token: token() });
  };
}
