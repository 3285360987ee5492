import { obtain, type ObtainOptions } from '../programs/obtain'
import { VERSITYGW } from './program'

/** The S3 server to use; `CRUCIBLE_VERSITYGW` can name one. Throws with the sources that were tried and possible remedies. */
export function resolveVersitygw(options: Omit<ObtainOptions, 'variable'>): Promise<string> {
  return obtain(VERSITYGW, { ...options, variable: 'CRUCIBLE_VERSITYGW' })
}
