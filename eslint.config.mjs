import { readFileSync } from 'node:fs'
import eslint from '@eslint/js'
import tseslint from 'typescript-eslint'
import { keptPromises } from './tools/kept-promises.js'

const {
  rooms: ROOMS,
  parts: PARTS,
  test: TESTS,
} = JSON.parse(readFileSync(new URL('tools/import-law.json', import.meta.url), 'utf8'))

/** What each folder may import: its own files, those of other rooms, and packages. `test/architecture.test.ts` checks the rest of the law. */
const LAW = Object.fromEntries(
  Object.entries(ROOMS).map(([room, { rooms, packages }]) => [room, { folders: [...rooms, room], packages }]),
)
// The small cloud is for `crucible dev` and the demo; nothing else of the product may need it.
const alias = (room) => room.replace(/^packages\//, '#')
LAW['cli/dev'] = { ...LAW.cli, packages: [...LAW.cli.packages, ...PARTS['cli/dev'].alsoRooms.map(alias)] }

const SIBLINGS = '\\./'

/** The small cloud is a stranger to the product. */
const SMALL_CLOUD_LAW = {
  files: ['packages/small-cloud/**/*.ts'],
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(?:#|(?:\\.\\./)+(?:${Object.keys(LAW).join('|')})(?:/|$))`,
            message: 'The small cloud imports nothing of the product (ARCHITECTURE.md).',
          },
        ],
      },
    ],
  },
}

/** Tests may import every room, but no tools; `test/architecture.test.ts` has more about the folders that they share. */
const TEST_LAW = {
  files: ['test/**/*.ts'],
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(?:\\.\\./)+(?:${TESTS.never.join('|')})(?:/|$)`,
            message: 'Tests run tools as processes (ARCHITECTURE.md).',
          },
        ],
      },
    ],
  },
}

/** Relative imports of a folder as a regular expression of what is forbidden. */
function law(folder, { folders, packages }) {
  const own = `(?:\\.\\./)*(?:${folders.join('|')})(?:/|$)`
  const inside =
    folders.includes(folder) || folders.includes(folder.split('/')[0])
      ? `|(?:\\.\\./)+(?!(?:${Object.keys(LAW).join('|')}|test)/)`
      : ''
  const allowed = [`${SIBLINGS}`, own, ...packages.map((name) => name.replace('/', '\\/'))]
  return {
    files: [`${folder}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: `^(?!(?:${allowed.join('|')}${inside}))`,
              message: `Outside the import law of ${folder}/ (ARCHITECTURE.md).`,
            },
          ],
        },
      ],
    },
  }
}

/** A literal that is spread only hides lines, and spoils inference. */
const NO_GOLF = [
  'SpreadElement > ObjectExpression',
  'SpreadElement > ArrayExpression',
  'SpreadElement > TSAsExpression > ArrayExpression',
  'SpreadElement > TSAsExpression > ObjectExpression',
].map((selector) => ({
  selector,
  message: 'Write the elements of the literal in place instead of spreading it.',
}))

const PRODUCT_SYNTAX = [
  {
    selector: "BinaryExpression[left.property.name='name'][right.value=/Error$/]",
    message:
      'Errors are known by their codes: see isCoded in core/errors.ts, and isTemporals in client/errors.ts.',
  },
  ...NO_GOLF,
  {
    selector:
      "CallExpression[callee.object.name='AbortSignal'][callee.property.name='any'] CallExpression[callee.object.name='AbortSignal'][callee.property.name='timeout']",
    message: 'Node may drop this timeout, so that it never fires: use limitedTo (backends/calls.ts).',
  },
]

/** The wall clock steps, in either direction. */
const NO_WALL_CLOCK_DURATIONS = {
  selector:
    "BinaryExpression > CallExpression[callee.object.name='Date'][callee.property.name='now'], BinaryExpression[operator='-'] > CallExpression[callee.property.name='clock']",
  message:
    'Measure durations with performance.now(), and take the time for dates as an argument (docs/decisions/0063).',
}

export default tseslint.config(
  { ignores: ['**/dist/', 'node_modules/', 'coverage/', 'test/replay/histories/'] },
  eslint.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-console': 'error',
      // A file has one subject; its length is a hint that it may have two.
      'max-lines': ['warn', { max: 500 }],
      'no-restricted-exports': [
        'error',
        { restrictDefaultExports: { direct: true, named: true, defaultFrom: true } },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: true }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      // `noUncheckedIndexedAccess` makes every index possibly undefined; where a bound was checked a line above, `!` says so.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Interfaces ask for promises; an implementation that has nothing to wait for still gives one.
      '@typescript-eslint/require-await': 'off',
    },
  },
  ...Object.entries(LAW).map(([folder, rule]) => law(folder, rule)),
  SMALL_CLOUD_LAW,
  TEST_LAW,
  {
    files: ['workflows/**/*.ts'],
    plugins: { crucible: { rules: { 'kept-promises': keptPromises } } },
    rules: {
      'crucible/kept-promises': 'error',
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
    },
  },
  {
    // Only config.ts files read the environment (design: no ambient world).
    files: Object.keys(LAW).map((room) => `${room}/**/*.ts`),
    ignores: ['**/config.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Read in config.ts files only.' },
      ],
      'no-restricted-syntax': ['error', ...PRODUCT_SYNTAX, NO_WALL_CLOCK_DURATIONS],
    },
  },
  {
    // Here an instant becomes a date that others read, or a date of others is compared.
    files: [
      'client/deadline.ts',
      'service/grants.ts',
      'backends/ec2/capacity/spot.ts',
      'backends/ec2/reserving/hourly.ts',
      'backends/ec2/sdk/plan.ts',
      'backends/modal/machines.ts',
      'packages/small-cloud/src/{assemble,clock}.ts',
      'packages/small-cloud/src/wire/server.ts',
      'packages/small-cloud/src/s3/front.ts',
      // Temporal gives workflows a clock of its own.
      'workflows/**/*.ts',
    ],
    rules: { 'no-restricted-syntax': ['error', ...PRODUCT_SYNTAX] },
  },
  {
    // What a command or a backend needs is loaded when it is needed; the bundle of the quick commands understands `require` (docs/decisions/0009),
    // and tests need no other spelling.
    files: [
      '{cli,client,network}/**/*.ts',
      'backends/registry.ts',
      'backends/*/index.ts',
      'test/proof/names.ts',
    ],
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    files: ['{test,packages/*/test}/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', ...NO_GOLF],
      // Helpers of a test are its own affair.
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
    },
  },
  {
    files: ['**/*.mjs', '**/*.js'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: {
      ...tseslint.configs.disableTypeChecked.languageOptions,
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        module: 'writable',
        require: 'readonly',
        Buffer: 'readonly',
        setTimeout: 'readonly',
        fetch: 'readonly',
      },
    },
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      'no-console': 'off',
      'no-restricted-exports': 'off',
      '@typescript-eslint/no-require-imports': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
    },
  },
)
