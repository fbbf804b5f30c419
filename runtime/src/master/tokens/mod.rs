//! Access tokens of a cluster: their rights, their generation, and which are revoked.
//!
//! All tokens are derived from the cluster's secret and their names, so none is stored. A name has the form
//! `ROLE[-LABEL]@GENERATION`, or `ROLE@NAME` for a page that the token NAME requested. The state directory holds the
//! generation and the names that were revoked. The roles required by the routes are in `auth`.

mod error;
mod limits;
mod list;
mod name;

pub use error::TokensError;
use limits::{REVOKED_MAX, SCHEMA};

use crate::api::{JobOwner, Quota};
use crate::role::Role;
use gristmill_scheduler::ids::WorkerId;
use gristmill_worker::http::{
    Endpoint, JoinLine, Key, Plaintext, SECRET_FILE, Secret, TOKENS_FILE, Token, read_private,
    replace_private,
};
use name::{TokenName, check_label};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Longest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Number of tokens that can have a quota.
const QUOTAS_MAX: usize = 10_000;

/// Label of the token of workers that are started with the state directory's own join line.
const OWN_WORKERS: &str = "own";

/// Contents of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    /// [`SCHEMA`].
    schema: u32,
    generation: u32,
    /// Time until which tokens of the previous generation are also accepted, seconds since 1970.
    earlier_until: u64,
    revoked: BTreeSet<String>,
    /// Quotas of tokens by role and label, for all generations.
    #[serde(default)]
    quotas: BTreeMap<String, Quota>,
    /// Names of created tokens, for `cluster token list`, of the current generation and the previous one.
    #[serde(default)]
    made: BTreeSet<String>,
}

impl Default for TokensFile {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            generation: 0,
            earlier_until: 0,
            revoked: BTreeSet::new(),
            quotas: BTreeMap::new(),
            made: BTreeSet::new(),
        }
    }
}

/// The tokens of one master.
pub struct Tokens {
    secret: Secret,
    /// `None` for a cluster that does not outlive its master.
    path: Option<PathBuf>,
    kept: RwLock<TokensFile>,
    /// File of the join line of the user who started the master, and its content besides the token.
    join: Mutex<Option<(PathBuf, Endpoint)>>,
    /// Held while something is changed and written, so that no change overwrites another.
    changing: Mutex<()>,
    /// Time of the last request with each token since this master started, seconds since 1970.
    seen: Mutex<BTreeMap<String, u64>>,
    /// Changes whenever a token may have become invalid.
    changed: watch::Sender<()>,
}

impl Tokens {
    /// Creates the tokens of a cluster with this secret that does not outlive its master.
    #[must_use]
    pub fn of_secret(secret: Secret) -> Self {
        Self::new(secret, None, TokensFile::default())
    }

    /// Loads the tokens of a state directory as its last master left them. A directory without a secret gets one. No
    /// other process may do so meanwhile.
    ///
    /// # Errors
    /// A file that cannot be used, or a secret without its file of tokens, because revoked tokens must stay revoked.
    pub fn of_state(directory: &Path) -> Result<Self, TokensError> {
        let (path, secret_path) = (directory.join(TOKENS_FILE), directory.join(SECRET_FILE));
        let secret = match Secret::load(&secret_path)? {
            Some(secret) => secret,
            None => {
                // The file comes first: tokens of another secret open nothing here, whatever the file contains, and no
                // secret ever exists without the file.
                write(&path, &TokensFile::default())?;
                Secret::load_or_create(&secret_path)?
            }
        };
        let kept = read(&path)?.ok_or(TokensError::Lost { path: path.clone(), secret: secret_path })?;
        Ok(Self::new(secret, Some(path), kept))
    }

    fn new(secret: Secret, path: Option<PathBuf>, kept: TokensFile) -> Self {
        Self {
            secret,
            path,
            kept: RwLock::new(kept),
            join: Mutex::new(None),
            changing: Mutex::new(()),
            seen: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// Token of this role and label, of the current generation.
    ///
    /// # Errors
    /// [`TokensError::Label`].
    pub fn token(&self, role: Role, label: Option<&str>) -> Result<Token, TokensError> {
        check_label(label)?;
        if role == Role::Work && label == Some(OWN_WORKERS) {
            return Err(TokensError::Reserved { label: OWN_WORKERS });
        }
        let generation = self.kept().generation;
        let name = TokenName { role, asker: None, label: label.map(str::to_owned), generation }.to_string();
        if self.kept().revoked.contains(&name) {
            return Err(TokensError::Revoked { name });
        }
        Ok(Token::derive(&self.secret, &name)?)
    }

    /// Token of a page with this role, requested with the token called `asker`. The page's token ends with that token,
    /// and is that token itself if it has the role.
    ///
    /// # Errors
    /// [`TokensError::Ended`] if `asker` is not valid any more.
    pub(super) fn page_token(&self, asker: &str, role: Role) -> Result<Token, TokensError> {
        let asked: TokenName = asker.parse()?;
        if self.find(asker).is_none() {
            return Err(TokensError::Ended { name: asker.to_owned() });
        }
        let name = match asked.role == role {
            true => asked,
            // The name would not show that this page requested it, so the token would outlive the page.
            false if asked.asker.is_some() => return Err(TokensError::Page { name: asker.to_owned() }),
            false => TokenName { role, asker: Some(asked.role), ..asked },
        };
        if self.find(&name.to_string()).is_none() {
            return Err(TokensError::Ended { name: name.to_string() });
        }
        Ok(Token::derive(&self.secret, &name.to_string())?)
    }

    /// Sets the quota of all jobs submitted with the token of this role and label. A quota without limits is removed.
    ///
    /// # Errors
    /// A token that does not submit, too many quotas, or a file that cannot be written. Nothing has changed then.
    pub(super) fn set_quota(&self, role: Role, label: Option<&str>, quota: Quota) -> Result<(), TokensError> {
        check_label(label)?;
        if role != Role::Submit {
            return Err(TokensError::Quota { role: role.word() });
        }
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept();
        let name = owner_name(role, label);
        match quota.is_none() {
            true => drop(kept.quotas.remove(&name)),
            false if QUOTAS_MAX <= kept.quotas.len() && !kept.quotas.contains_key(&name) => {
                return Err(TokensError::QuotasFull { most: QUOTAS_MAX });
            }
            false => drop(kept.quotas.insert(name, quota)),
        }
        self.keep(kept)
    }

    /// Owner of the jobs submitted with the token of this name. For a page, this is the token that requested it.
    pub(super) fn owner(&self, name: &str) -> Option<JobOwner> {
        let TokenName { role, asker, label, .. } = name.parse().ok()?;
        let token = owner_name(asker.unwrap_or(role), label.as_deref());
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let quota = kept.quotas.get(&token).copied().unwrap_or_default();
        Some(JobOwner { token, quota })
    }

    /// True if the token of this name, or the one that requested its page, has the admin role.
    pub(super) fn is_admin(name: &str) -> bool {
        name.parse().is_ok_and(|name: TokenName| name.asker.unwrap_or(name.role) == Role::Admin)
    }

    /// Role and secret of the token of this name; `None` if no valid token has this name.
    pub(super) fn find(&self, name: &str) -> Option<(Role, Secret)> {
        let parsed: TokenName = name.parse().ok()?;
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let holds = match kept.generation.checked_sub(parsed.generation) {
            Some(0) => true,
            Some(1) => since_1970() < kept.earlier_until,
            _ => false,
        };
        let asker_revoked = parsed.asker().is_some_and(|asker| kept.revoked.contains(&asker.to_string()));
        if !holds || asker_revoked || kept.revoked.contains(name) {
            return None;
        }
        Some((parsed.role, Token::derive(&self.secret, name).ok()?.secret().clone()))
    }

    /// Secret from which the keys of workers' listings are derived ([`list_key`]).
    pub(super) fn list_secret(&self) -> Secret {
        self.secret.derive("list files")
    }

    /// Revokes the token of this name.
    ///
    /// # Errors
    /// A name that no token has, too many revoked tokens, or a file that cannot be written. Nothing has changed then.
    pub(super) fn revoke(&self, name: &str) -> Result<(), TokensError> {
        let parsed: TokenName = name.parse()?;
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept();
        if kept.generation < parsed.generation {
            return Err(TokensError::Future { name: name.to_owned(), generation: kept.generation });
        }
        let own = TokenName { role: Role::Admin, asker: None, label: None, generation: kept.generation };
        if parsed == own {
            return Err(TokensError::Own { name: name.to_owned() });
        }
        if REVOKED_MAX <= kept.revoked.len() {
            return Err(TokensError::Full);
        }
        kept.revoked.insert(name.to_owned());
        self.keep(kept)
    }

    /// Replaces all tokens. Earlier tokens are accepted for this long. The join line of the user who started the master
    /// is updated.
    ///
    /// # Errors
    /// A file that cannot be written. Nothing has changed then, except for [`TokensError::Rotated`].
    pub(super) fn rotate(&self, grace: Duration) -> Result<(), TokensError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept();
        kept.generation = kept.generation.checked_add(1).ok_or(TokensError::Full)?;
        kept.earlier_until = since_1970().saturating_add(grace.as_secs());
        let of_last = format!("@{}", kept.generation - 1);
        kept.revoked.retain(|name| name.ends_with(&of_last));
        kept.made.retain(|name| name.ends_with(&of_last));
        self.keep(kept)?;
        self.write_join().map_err(|error| match (error, self.join_path()) {
            (TokensError::File(source), Some(path)) => TokensError::Rotated { path, source },
            (error, _) => error,
        })
    }

    /// Writes the join line of the user who started the master to this file, now and whenever it changes.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_join(&self, path: PathBuf, endpoint: Endpoint) -> Result<JoinLine, TokensError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        *self.join.lock().unwrap_or_else(PoisonError::into_inner) = Some((path, endpoint.clone()));
        self.write_join()?;
        Ok(JoinLine { endpoint, token: self.token(Role::Admin, None)?, plaintext: Plaintext::default() })
    }

    /// Channel that is notified of each change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn join_path(&self) -> Option<PathBuf> {
        let join = self.join.lock().unwrap_or_else(PoisonError::into_inner);
        join.as_ref().map(|(path, _)| path.clone())
    }

    fn write_join(&self) -> Result<(), TokensError> {
        let join = self.join.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((path, endpoint)) = join else { return Ok(()) };
        let token = self.token(Role::Admin, None)?;
        let line = JoinLine { endpoint, token, plaintext: Plaintext::default() };
        Ok(replace_private(&path, &line.to_text())?)
    }

    fn kept(&self) -> TokensFile {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies a change once it is on disk: a master that dies must not make a revoked token valid again.
    fn keep(&self, kept: TokensFile) -> Result<(), TokensError> {
        if let Some(path) = &self.path {
            write(path, &kept)?;
        }
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = kept;
        self.changed.send_replace(());
        Ok(())
    }
}

/// Token for the workers started by the owner of the state directory, if `token` is the admin's token of its cluster.
/// Needs no master.
///
/// # Errors
/// A secret that cannot be used.
pub fn work_token_of(directory: &Path, token: &Token) -> Result<Option<Token>, TokensError> {
    // A token with a label can be revoked alone, and with it the workers that it starts.
    let Ok(TokenName { role: Role::Admin, asker: None, label: None, generation }) = token.name().parse()
    else {
        return Ok(None);
    };
    let Some(secret) = Secret::load(&directory.join(SECRET_FILE))? else { return Ok(None) };
    if Token::derive(&secret, token.name())? != *token {
        return Ok(None);
    }
    let label = Some(OWN_WORKERS.to_owned());
    let name = TokenName { role: Role::Work, asker: None, label, generation };
    Ok(Some(Token::derive(&secret, &name.to_string())?))
}

/// A token's name without its generation.
fn owner_name(role: Role, label: Option<&str>) -> String {
    let role = role.word();
    label.map_or_else(|| role.to_owned(), |label| format!("{role}-{label}"))
}

/// Key of a worker's listings and samples of its files.
pub(super) fn list_key(list_secret: &Secret, worker: WorkerId) -> Secret {
    list_secret.derive(&worker.to_string())
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn read(path: &Path) -> Result<Option<TokensFile>, TokensError> {
    let Some(text) = read_private(path, FILE_BYTES_MAX)? else { return Ok(None) };
    let kept: TokensFile = serde_json::from_str(&text)
        .map_err(|source| TokensError::Content { path: path.to_owned(), source })?;
    match kept.schema {
        SCHEMA => Ok(Some(kept)),
        found => Err(TokensError::Schema { path: path.to_owned(), found }),
    }
}

fn write(path: &Path, kept: &TokensFile) -> Result<(), TokensError> {
    let text = serde_json::to_string(kept)
        .map_err(|source| TokensError::Content { path: path.to_owned(), source })?;
    Ok(replace_private(path, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::http::PrivateFileError;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn closed_directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        directory
    }

    fn tokens() -> Tokens {
        Tokens::of_secret(Secret::from_bytes([7; 32]))
    }

    fn holds(tokens: &Tokens, token: &Token) -> Option<Role> {
        tokens.find(token.name()).filter(|(_, secret)| secret == token.secret()).map(|(role, _)| role)
    }

    #[test]
    fn work_token_of_a_state_directory_is_for_its_bare_admin_token_and_its_label_for_nobody_else() {
        let directory = closed_directory();
        let secret = Secret::from_bytes([7; 32]);
        fs::write(directory.path().join(SECRET_FILE), secret.to_text().as_str()).unwrap();
        fs::set_permissions(directory.path().join(SECRET_FILE), fs::Permissions::from_mode(0o600)).unwrap();
        let tokens = tokens();
        let of = |label| {
            let admin = tokens.token(Role::Admin, label).unwrap();
            work_token_of(directory.path(), &admin).unwrap().map(|token| token.name().to_owned())
        };
        assert_eq!(of(None).as_deref(), Some("work-own@0"));
        // Revoking it ends the workers that joined with it.
        assert_eq!(of(Some("laptop")), None);
        assert!(matches!(tokens.token(Role::Work, Some("own")), Err(TokensError::Reserved { .. })));
    }

    #[test]
    fn each_token_has_a_key_of_its_own_and_the_role_of_its_name() {
        let tokens = tokens();
        let mut keys = BTreeSet::new();
        for (role, label, name) in [
            (Role::Admin, None, "admin@0"),
            (Role::View, Some("projector"), "view-projector@0"),
            (Role::Work, None, "work@0"),
            (Role::Work, Some("laptop-3"), "work-laptop-3@0"),
            (Role::Submit, None, "submit@0"),
        ] {
            let token = tokens.token(role, label).unwrap();
            assert_eq!((token.name(), holds(&tokens, &token)), (name, Some(role)));
            keys.insert(*token.secret().as_bytes());
            assert_eq!(token.to_text().parse::<Token>().unwrap(), token);
        }
        assert_eq!(keys.len(), 5);
        for name in [
            "",
            "root@0",
            "admin",
            "admin@1",
            "admin@00",
            "admin@+0",
            "view-@0",
            "View@0",
            "view-a b@0",
            "admin@0 ",
        ] {
            assert!(tokens.find(name).is_none(), "{name:?}");
        }
        assert!(tokens.token(Role::View, Some("a@1")).is_err());
    }

    #[test]
    fn revoked_token_opens_nothing_also_after_a_restart() {
        let directory = closed_directory();
        let tokens = Tokens::of_state(directory.path()).unwrap();
        let (one, other) = (
            tokens.token(Role::Work, Some("one")).unwrap(),
            tokens.token(Role::Work, Some("other")).unwrap(),
        );
        let mut changes = tokens.changes();
        tokens.revoke(one.name()).unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        for refused in ["work-one", "work-one@1", "admin@0"] {
            assert!(tokens.revoke(refused).is_err() && !changes.has_changed().unwrap(), "{refused}");
        }
        assert!(tokens.token(Role::Work, Some("one")).is_err(), "made although it opens nothing");
        for tokens in [&tokens, &Tokens::of_state(directory.path()).unwrap()] {
            assert_eq!((holds(tokens, &one), holds(tokens, &other)), (None, Some(Role::Work)));
        }
        fs::write(directory.path().join(TOKENS_FILE), "{}").unwrap();
        assert!(Tokens::of_state(directory.path()).is_err(), "what was revoked is forgotten");
    }

    #[test]
    fn tokens_file_is_refused_when_it_is_no_private_file() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let directory = closed_directory();
        let path = directory.path().join(TOKENS_FILE);
        Tokens::of_state(directory.path()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path), 0o600);
        let refused = || Tokens::of_state(directory.path()).map(|_| ()).unwrap_err();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(refused(), TokensError::File(PrivateFileError::Foreign(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let other = directory.path().join("other");
        fs::rename(&path, &other).unwrap();
        symlink(&other, &path).unwrap();
        assert!(matches!(refused(), TokensError::File(PrivateFileError::Io { action: "open", .. })));
        fs::remove_file(&path).unwrap();
        // Opening it must not block.
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        assert!(matches!(refused(), TokensError::File(PrivateFileError::Content { .. })));
        fs::remove_file(&path).unwrap();
        assert!(matches!(refused(), TokensError::Lost { .. }));
        fs::rename(&other, &path).unwrap();
        Tokens::of_state(directory.path()).unwrap();
    }

    #[test]
    fn quota_is_of_a_token_that_submits_over_rotations_and_restarts_until_it_is_lifted() {
        let directory = closed_directory();
        let tokens = Tokens::of_state(directory.path()).unwrap();
        let quota = Quota { jobs_max: Some(2), ..Quota::default() };
        tokens.set_quota(Role::Submit, Some("ada"), quota).unwrap();
        assert!(matches!(tokens.set_quota(Role::Work, None, quota), Err(TokensError::Quota { .. })));
        tokens.rotate(Duration::ZERO).unwrap();
        for tokens in [&tokens, &Tokens::of_state(directory.path()).unwrap()] {
            let owner = tokens.owner("submit-ada@1").unwrap();
            assert_eq!((owner.token.as_str(), owner.quota), ("submit-ada", quota));
            for other in ["submit@1", "submit-bob@1", "admin@1"] {
                assert!(tokens.owner(other).unwrap().quota.is_none(), "{other}");
            }
            assert_eq!(tokens.owner("nonsense"), None);
        }
        tokens.set_quota(Role::Submit, Some("ada"), Quota::default()).unwrap();
        assert!(tokens.owner("submit-ada@1").unwrap().quota.is_none());
    }

    #[test]
    fn revocations_at_the_same_time_are_all_kept() {
        let directory = closed_directory();
        let tokens = Tokens::of_state(directory.path()).unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let tokens = &tokens;
                scope.spawn(move || tokens.revoke(&format!("view-{number}@0")).unwrap());
            }
        });
        let again = Tokens::of_state(directory.path()).unwrap();
        for number in 0..16 {
            let name = format!("view-{number}@0");
            assert!(tokens.find(&name).is_none() && again.find(&name).is_none(), "{name}");
        }
    }

    #[test]
    fn tokens_of_before_a_rotation_hold_for_the_time_of_grace_and_one_rotation() {
        let tokens = tokens();
        let first = tokens.token(Role::Submit, None).unwrap();
        tokens.revoke("view-old@0").unwrap();
        tokens.rotate(Duration::from_secs(3600)).unwrap();
        let second = tokens.token(Role::Submit, None).unwrap();
        assert_ne!(first, second);
        assert_eq!(
            (holds(&tokens, &first), holds(&tokens, &second)),
            (Some(Role::Submit), Some(Role::Submit))
        );
        assert!(tokens.find("view-old@0").is_none(), "revoked before");
        tokens.rotate(Duration::MAX).unwrap();
        assert_eq!(holds(&tokens, &second), Some(Role::Submit), "for ever");
        let second = first.clone();
        tokens.rotate(Duration::ZERO).unwrap();
        assert_eq!((holds(&tokens, &first), holds(&tokens, &second)), (None, None));
    }

    #[test]
    fn role_passes_its_own_doors_and_admin_all() {
        use Role::{Admin, Submit, View, Work};
        let all = [View, Submit, Work, Admin];
        let passes = |role: Role| all.into_iter().filter(move |door| role.may(*door)).collect::<Vec<_>>();
        assert_eq!(passes(View), [View]);
        assert_eq!(passes(Submit), [View, Submit]);
        assert_eq!(passes(Work), [Work]);
        assert_eq!(passes(Admin), all);
    }
}
