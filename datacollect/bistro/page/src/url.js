// Addresses as browsers read them: what tus-js-client takes a package for, which is left out.
export default globalThis.URL;
