// AES-GCM for sealed sessions, from node:crypto: synchronous, as the module needs it.
import { createCipheriv, createDecipheriv } from 'node:crypto';

/**
 * @param {Uint8Array} sealKey 16 or 32 bytes, of this direction
 * @param {Uint8Array} openKey of the other
 * @returns {import('./ackbits.mjs').Aead}
 */
export function aesGcm(sealKey, openKey) {
  const overhead = 16;
  /** @param {Uint8Array} key */
  const name = (key) => (key.length === 32 ? 'aes-256-gcm' : 'aes-128-gcm');
  return {
    overhead,
    nonceSize: 12,
    seal(nonce, plaintext, additional) {
      const cipher = createCipheriv(name(sealKey), sealKey, nonce).setAAD(additional);
      return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    },
    open(nonce, sealed, additional) {
      const end = sealed.length - overhead;
      const decipher = createDecipheriv(name(openKey), openKey, nonce, { authTagLength: overhead });
      decipher.setAAD(additional).setAuthTag(sealed.subarray(end));
      const plaintext = decipher.update(sealed.subarray(0, end));
      try {
        decipher.final();
      } catch {
        return null;
      }
      return plaintext;
    },
  };
}
