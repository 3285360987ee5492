import type { CredentialSource } from '../credentials'

/** Where other programs for Lambda keep the key: a file with the line `api_key = KEY`, or with the key alone. */
export const LAMBDA_CREDENTIALS: CredentialSource = {
  variables: ['LAMBDA_API_KEY'],
  file: {
    paths: ['~/.lambda_cloud', '~/.lambda_cloud/lambda_keys'],
    read: (text) => {
      const named = /^[ \t]*api_key[ \t]*=[ \t]*"?([^\s"]+)"?[ \t\r]*$/m.exec(text)?.[1]
      const alone = text.trim()
      return { LAMBDA_API_KEY: named ?? (/\s/.test(alone) ? undefined : alone) }
    },
  },
}
