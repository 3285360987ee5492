import { randomBytes } from 'node:crypto'
import { layout } from './layout'
import { openSecrets, reservationKey, sealSecrets } from './secrets'
import type { ObjectStore } from './store'

/** Name under which the URL of a webhook is sealed. Such a URL often lets anyone post, so it is never in a workflow's history. */
const URL_NAME = 'url'
const NONCE_BYTES = 16

export async function putWebhook(
  store: ObjectStore,
  key: Buffer,
  { id, url }: { id: string; url: string },
): Promise<void> {
  const sealed = sealSecrets(reservationKey(key, id), { [URL_NAME]: url }, randomBytes(NONCE_BYTES))
  await store.put(layout.reservationWebhook(id), sealed)
}

/** Undefined without one. */
export async function readWebhook(store: ObjectStore, key: Buffer, id: string): Promise<string | undefined> {
  const sealed = await store.get(layout.reservationWebhook(id))
  return sealed && openSecrets(reservationKey(key, id), sealed.toString('utf8'))[URL_NAME]
}
