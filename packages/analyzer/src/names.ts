/** Names of libraries. */

/** Libraries that are known under several names. */
const CANONICAL: readonly (readonly [string, string])[] = [
  ['pytorch_lightning.', 'lightning.'],
  ['lightning.pytorch.', 'lightning.'],
  ['lightning_fabric.', 'lightning.fabric.'],
  ['tensorflow.keras.', 'keras.'],
  ['tensorflow.python.keras.', 'keras.'],
  ['tf_keras.', 'keras.'],
]

/** A dotted name with the library's usual name. */
export function canonicalName(name: string): string {
  const found = CANONICAL.find(([alias]) => name.startsWith(alias))
  return found === undefined ? name : `${found[1]}${name.slice(found[0].length)}`
}
