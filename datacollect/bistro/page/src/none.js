// What age-encryption takes for recipients of other kinds and for passphrases: events name X25519 keys
// alone, so that all of it would be loaded by everybody and called by nobody.
export const MLKEM768P256 = undefined;
export const MLKEM768X25519 = undefined;
export const p256 = undefined;
export const scrypt = undefined;
