// Decides, before anything else runs, where this page may connect to: nowhere, or to the server of one file.
{
  const url = new URLSearchParams(location.search).get('url');
  let origin = null;
  try {
    const whole = url === null ? null : new URL(url, location.href);
    origin = whole && /^https?:$/.test(whole.protocol) ? whole.origin : null;
  } catch {
    // Not an address: nowhere.
  }
  const policy = document.createElement('meta');
  policy.httpEquiv = 'Content-Security-Policy';
  policy.content = `connect-src ${origin ?? "'none'"}`;
  document.head.append(policy);
}
