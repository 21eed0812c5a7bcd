//! Servers of others that are unpacked and not installed: Exim, OpenSMTPD and Dovecot's submission. Mail of a server of ours goes
//! to each of them, and from it to another server of ours, encrypted.
//!
//! `scripts/mail-servers` brings them. They run in a namespace of mounts of their own, where the users and folders are that their
//! packages would make; without root the tests say so and are left out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scrinium_bench::process::{Process, command};

use crate::mail_peers::{MESSAGES, free_port, open_folder, ours, own, start, write};
use crate::mail_ports::MailServer;
use crate::mail_programs::cached;

/// The password with which ours logs in at Dovecot.
const PASSWORD: &str = "secret-of-dovecot";

/// Users and groups that the packages would make.
const USERS: &str = "Debian-exim:x:991:991::/:/usr/sbin/nologin\nopensmtpd:x:992:992::/:/usr/sbin/nologin\n\
                     opensmtpq:x:993:993::/:/usr/sbin/nologin\n";
const GROUPS: &str = "Debian-exim:x:991:\nopensmtpd:x:992:\nopensmtpq:x:993:\n";

/// What one of them needs to know.
struct Scene<'a> {
    /// Where packages are unpacked.
    unpacked: &'a Path,
    folder: &'a Path,
    port: u16,
    /// The SMTP port of the server that gets the mail.
    next: u16,
}

/// Where the packages are, if this machine can run them.
fn unpacked() -> Option<PathBuf> {
    let unpacked = cached("mail-servers-1");
    let why = if !unpacked.join("usr").exists() {
        "there are no mail servers to try; scripts/mail-servers brings them"
    } else if !rustix::process::geteuid().is_root() {
        "mail servers are started by root only"
    } else if !Command::new("unshare")
        .args(["-m", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|ran| ran.success())
    {
        "no namespace of mounts can be made here"
    } else {
        return Some(unpacked);
    };
    scrinium_fault::skip(why);
    None
}

impl Scene<'_> {
    /// A command in a namespace where the users are, and folders that the packages would make are empty.
    fn within(&self, program: &str) -> Command {
        let (users, groups) = (self.folder.join("passwd"), self.folder.join("group"));
        let add = |system: &str, own: &Path, more: &str| {
            fs::write(own, fs::read_to_string(system).unwrap() + more).unwrap();
        };
        add("/etc/passwd", &users, USERS);
        add("/etc/group", &groups, GROUPS);
        let script = format!(
            "set -e; mount --bind {} /etc/passwd; mount --bind {} /etc/group; mount -t tmpfs none /run; \
             mount -t tmpfs none /var/spool; mkdir -m 711 /var/spool/smtpd; mount -t tmpfs none /var/lib; \
             mkdir -p -m 755 /var/lib/opensmtpd/empty; exec \"$@\"",
            users.display(),
            groups.display()
        );
        let mut command = command("unshare", None);
        command.args(["-m", "sh", "-c", &script, "sh"]).arg(self.unpacked.join("usr/sbin").join(program));
        command.env("LD_LIBRARY_PATH", self.unpacked.join("usr/lib/x86_64-linux-gnu"));
        command
    }

    fn start(&self, command: Command) -> Process {
        start(command, self.port, &self.folder.join("log"))
    }
}

fn exim(scene: &Scene<'_>) -> Process {
    let shown = scene.folder.display();
    let settings = format!(
        "primary_hostname = mx.exim.example\nexim_path = {}/usr/sbin/exim4\nexim_user = Debian-exim\n\
         exim_group = Debian-exim\ndeliver_drop_privilege = true\nsmtp_accept_queue_per_connection = 0\n\
         keep_environment = LD_LIBRARY_PATH\n\
         spool_directory = {shown}/spool\nlog_file_path = {shown}/spool/%slog\npid_file_path = {shown}/spool/pid\n\
         daemon_smtp_ports = {}\nlocal_interfaces = 127.0.0.1\nacl_smtp_rcpt = accept\n\
         tls_advertise_hosts = *\ntls_certificate = {shown}/certificate.pem\ntls_privatekey = {shown}/key.pem\n\
         begin acl\nbegin routers\nnext:\n  driver = manualroute\n  route_list = * 127.0.0.1\n  self = send\n  \
         transport = next\nbegin transports\nnext:\n  driver = smtp\n  port = {}\n  allow_localhost = true\n  \
         hosts_require_tls = *\n  tls_verify_hosts =\n  tls_try_verify_hosts =\nbegin retry\n* * F,2h,5s\n",
        scene.unpacked.display(),
        scene.port,
        scene.next
    );
    let path = scene.folder.join("exim.conf");
    fs::write(&path, settings).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    own(&scene.folder.join("spool"), "991");
    own_key(scene, "991");
    let mut exim = scene.within("exim4");
    exim.arg("-C").arg(&path).args(["-bdf", "-q5s"]);
    scene.start(exim)
}

fn opensmtpd(scene: &Scene<'_>) -> Process {
    // It takes no key of the kind that ours makes for itself; what it sends on is encrypted.
    let settings = format!(
        "listen on 127.0.0.1 port {}\n\
         action \"next\" relay host \"smtp+tls://127.0.0.1:{}\" tls no-verify\nmatch from any for any action \"next\"\n",
        scene.port, scene.next
    );
    let path = scene.folder.join("smtpd.conf");
    fs::write(&path, settings).unwrap();
    let mut smtpd = scene.within("smtpd");
    smtpd.arg("-d").arg("-f").arg(&path);
    scene.start(smtpd)
}

fn dovecot(scene: &Scene<'_>) -> Process {
    let (shown, programs) = (scene.folder.display(), scene.unpacked.join("usr/lib/dovecot"));
    own(&scene.folder.join("mail"), "mail");
    fs::create_dir_all(scene.folder.join("run")).unwrap();
    own_key(scene, "0");
    let settings = format!(
        "base_dir = {shown}/run\nlog_path = {shown}/dovecot.mail\nprotocols = submission\nlisten = 127.0.0.1\n\
         ssl = required\nssl_cert = <{shown}/certificate.pem\nssl_key = <{shown}/key.pem\n\
         hostname = mx.dovecot.example\nmail_location = maildir:{shown}/mail/%n\nfirst_valid_uid = 1\n\
         submission_relay_host = 127.0.0.1\nsubmission_relay_port = {}\nsubmission_relay_ssl = starttls\n\
         submission_relay_ssl_verify = no\n\
         passdb {{\n  driver = static\n  args = password={PASSWORD}\n}}\n\
         userdb {{\n  driver = static\n  args = uid=mail gid=mail home={shown}/mail/%n allow_all_users=yes\n}}\n\
         service submission-login {{\n  executable = {1}/submission-login\n  inet_listener submission {{\n    \
         address = 127.0.0.1\n    port = {2}\n  }}\n}}\nservice submission {{\n  executable = {1}/submission\n}}\n",
        scene.next,
        programs.display(),
        scene.port
    );
    let path = scene.folder.join("dovecot.conf");
    fs::write(&path, settings).unwrap();
    let mut dovecot = command("/usr/sbin/dovecot", None);
    dovecot.arg("-F").arg("-c").arg(&path);
    scene.start(dovecot)
}

/// The key is that user's alone, and everybody may see the certificate.
fn own_key(scene: &Scene<'_>, user: &str) {
    let key = scene.folder.join("key.pem");
    fs::set_permissions(scene.folder.join("certificate.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let owned = Command::new("chown").arg(user).arg(&key).status();
    assert!(owned.is_ok_and(|status| status.success()));
}

/// Shows what the other server said, where a test fails.
struct Said(PathBuf);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", fs::read_to_string(&self.0).unwrap_or_default());
        }
    }
}

/// Ada's mail goes by way of the other server to Bob at a second server of ours.
fn by_way_of(name: &str, more_of_rule: &str, other: fn(&Scene<'_>) -> Process) {
    let Some(unpacked) = unpacked() else { return };
    let [first, second, folder] = [open_folder(), open_folder(), open_folder()];
    let domain = format!("{name}.example");
    let last = MailServer::start_with(second.path(), &[("SCRINIUM_MAIL__DOMAINS", &domain)]);
    for file in ["certificate.pem", "key.pem"] {
        fs::copy(last.certificate.with_file_name(file), folder.path().join(file)).unwrap();
    }
    let scene =
        Scene { unpacked: &unpacked, folder: folder.path(), port: free_port(), next: last.port("smtp") };
    let _said = Said(folder.path().join("log"));
    let _other = other(&scene);
    let secrets = first.path().join("secrets");
    fs::create_dir(&secrets).unwrap();
    fs::write(secrets.join("dovecot"), format!("{PASSWORD}\n")).unwrap();
    let rule = format!("{domain} relay 127.0.0.1:{} {more_of_rule}\n", scene.port);
    let authority = last.certificate.to_str().unwrap();
    let more = [
        ("SCRINIUM_OUTBOUND__CA_FILE", authority),
        ("SCRINIUM_OUTBOUND__SECRETS_DIR", secrets.to_str().unwrap()),
    ];
    let mail = ours(first.path(), &rule, &more);
    write(&mail, "bob", &domain);
    let found = last.mail_of_bob(MESSAGES);
    for number in 0..MESSAGES {
        assert_eq!(found.get(&format!("{domain} {number}")), Some(&1), "{found:?}");
    }
}

#[test]
fn exim_takes_our_mail_and_brings_it_to_us() {
    by_way_of("exim", "tls=verified", exim);
}

#[test]
fn opensmtpd_takes_our_mail_and_brings_it_to_us() {
    by_way_of("opensmtpd", "tls=off", opensmtpd);
}

#[test]
fn dovecots_submission_takes_our_mail_with_a_log_in_and_brings_it_to_us() {
    if !Path::new("/usr/sbin/dovecot").exists() {
        return scrinium_fault::skip("there is no Dovecot; scripts/peers brings it");
    }
    by_way_of("dovecot", "tls=verified login=ada:dovecot", dovecot);
}
