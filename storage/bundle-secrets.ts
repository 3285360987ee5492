/** Files that most likely hold credentials, recognized by name or content. */

const NAMES =
  /^(?:\.env(?:\..+)?|\.envrc|\.netrc|_netrc|\.pypirc|\.git-credentials|\.dockercfg|\.pgpass|\.htpasswd|(?:.*[_-])?credentials(?:\.(?:json|csv|ini|ya?ml|toml))?|kaggle\.json|id_(?:rsa|dsa|ecdsa|ed25519)|.+\.(?:pem|p12|pfx|jks|keystore|kdbx|ppk))$/i

/** Templates that are meant to be shared: the variables without their values. */
const TEMPLATES = /^\.env\.(?:example|sample|template|dist|defaults)$/i

const FOLDERS = new Set(['.aws', '.ssh', '.gnupg', '.azure', '.kube', '.gcloud'])

const PRIVATE_KEY = /^-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----\s*$/m
const SERVICE_ACCOUNT = /"private_key"\s*:\s*"-----BEGIN/
const NPM_TOKEN = /_authToken\s*=/
const ONLY_PUBLIC = /-----BEGIN (?:CERTIFICATE|PUBLIC KEY|TRUSTED CERTIFICATE)-----/

/** Keys are short; a larger file is data. */
export const SECRET_BYTES_MAX = 64 * 1024

/**
 * Returns why a file looks like a secret, or `undefined` when it does not.
 *
 * @param path relative, with forward slashes
 * @param text its content when it is at most `SECRET_BYTES_MAX` long, else empty
 */
export function secretReason(path: string, text: string): string | undefined {
  const parts = path.split('/')
  const name = parts.at(-1)!
  const folder = parts.slice(0, -1).find((part) => FOLDERS.has(part))
  if (folder !== undefined) return `in ${folder}/, a folder for credentials`
  if (PRIVATE_KEY.test(text) || SERVICE_ACCOUNT.test(text)) return 'holds a private key'
  if (name === '.npmrc' && NPM_TOKEN.test(text)) return 'holds a token'
  if (/\.pem$/i.test(name) && ONLY_PUBLIC.test(text)) return undefined
  if (NAMES.test(name) && !TEMPLATES.test(name)) return 'has a name for credentials'
  return undefined
}
