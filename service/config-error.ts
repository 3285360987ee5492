import { CodedError } from '../core/errors'

/** Invalid settings; the message names every problem and the correction. */
export class ConfigError extends CodedError<'config'> {
  constructor(readonly problems: readonly string[]) {
    super('config', problems.join('\n'))
  }
}
